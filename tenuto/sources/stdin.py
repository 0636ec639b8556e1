"""The process's standard input as a source: one session for all who listen to it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from tenuto.errors import ErrorCode, OperatorError, RequestError
from tenuto.media import AudioFormat
from tenuto.sources.base import MAX_RUN_SIZE
from tenuto.sources.pump import Pump, PumpTally
from tenuto.sources.tone import MAX_CHANNELS
from tenuto.sources.wav_stream import RawStream, WavStream

__all__ = ["STDIN_MODES", "StandardInput", "StdinSource", "parse_stdin_format"]

STDIN_MODES = ("live", "pausable")

NAME = "standard input"

HEADER_PATIENCE = 10.0
"""Seconds that a request waits for the header that says what standard input is."""

_FORMAT = re.compile(r"(?P<rate>[0-9]{1,9})(:(?P<channels>[0-9]{1,3}))?", re.ASCII)


def parse_stdin_format(text: str) -> AudioFormat | None:
    """`RATE[:CHANNELS]` of raw 16-bit samples, or None for `auto`: a WAV header says it."""
    if text == "auto":
        return None
    match = _FORMAT.fullmatch(text)
    if match is None:
        raise OperatorError(
            f"the format {text[:40]!r} of standard input",
            remedy="give auto or RATE[:CHANNELS], such as 16000 or 48000:2",
        )
    channels = int(match["channels"] or 1)
    try:
        if channels > MAX_CHANNELS:
            raise RequestError(ErrorCode.UNSUPPORTED_AUDIO, f"{channels} channels")
        return AudioFormat(int(match["rate"]), channels)
    except RequestError as error:
        raise OperatorError(
            f"the format {text!r} of standard input: {error.message}",
            remedy=error.remedy or f"give 1 to {MAX_CHANNELS} channels",
        ) from None


class StandardInput:
    """What `--stdin` serves; made on the loop, before anybody asks.

    `mode` is "live" (what nobody takes is dropped) or "pausable" (the writer waits).
    `on_off_pace` gets the announced and the measured rate of a live session whose audio
    does not come at the rate that it claims, once for each session.

    Raises `OperatorError` where nothing can come from the descriptor.
    """

    def __init__(
        self,
        mode: str,
        format: AudioFormat | None = None,
        *,
        descriptor: int = 0,
        on_off_pace: Callable[[int, float], None] = lambda announced, measured: None,
    ) -> None:
        _check(descriptor)
        self.live = mode == "live"
        self._raw = format
        stream = WavStream(NAME) if format is None else RawStream(format)
        self._pump = Pump(descriptor, stream, live=self.live, on_off_pace=on_off_pace)
        self._played = False
        self._pump.start()

    @property
    def tally(self) -> PumpTally:
        return self._pump.tally

    async def open(self) -> StdinSource:
        """A source that goes on where the last one stopped.

        Raises `RequestError`: SOURCE_ENDED after the end, UNSUPPORTED_AUDIO where it is no
        WAV, SOURCE_FAILED where nothing has come that would say what it is.
        """
        pump = self._pump
        try:
            async with asyncio.timeout(HEADER_PATIENCE):
                await pump.begun()
        except TimeoutError:
            raise RequestError(
                ErrorCode.SOURCE_FAILED,
                f"{NAME} has not begun: no whole WAV header within {HEADER_PATIENCE:g} s",
                remedy="start what writes to it, then ask again",
            ) from None
        if pump.over:
            if isinstance(pump.failure, RequestError):
                raise RequestError(
                    pump.failure.code, pump.failure.message, remedy=pump.failure.remedy
                )
            if self._played or pump.tally.skipped_bytes or pump.failure is not None:
                raise _ended(self.live, pump)
        return StdinSource(pump.format or AudioFormat(), not self.live, self)

    async def runs(self, source: StdinSource) -> AsyncGenerator[bytes | AudioFormat, None]:
        """What comes from now on, for this source alone."""
        self._played = True
        pump, current = self._pump, source.format
        pump.begin(source)
        try:
            while (run := await pump.take(source)) is not None:
                format, samples = run
                if format != current:
                    current = format
                    yield format
                for start in range(0, len(samples), MAX_RUN_SIZE):
                    yield samples[start : start + MAX_RUN_SIZE]
        finally:
            pump.end(source)


@dataclass(frozen=True, slots=True, eq=False)
class StdinSource:
    """One session's view of standard input."""

    format: AudioFormat
    pausable: bool
    input: StandardInput

    @property
    def kind(self) -> str:
        return "stdin"

    @property
    def patience(self) -> float | None:
        return None  # Whoever writes may have nothing to say for hours.

    def stream(self) -> AsyncGenerator[bytes | AudioFormat, None]:
        return self.input.runs(self)


def _check(descriptor: int) -> None:
    remedy = "pipe audio into it, such as: ffmpeg -i INPUT -f wav - | tenuto serve --stdin pausable"
    if os.isatty(descriptor):
        raise OperatorError(f"{NAME} is a terminal, which gives no audio", remedy=remedy)
    try:
        # Nothing is read, but it fails where nothing can be.
        os.read(descriptor, 0)
    except BlockingIOError:
        pass
    except OSError as error:
        raise OperatorError(f"{NAME} cannot be read: {error.strerror}", remedy=remedy) from None


def _ended(live: bool, pump: Pump) -> RequestError:
    why = f" ({pump.failure.message})" if pump.failure is not None else ""
    unheard = live and pump.tally.skipped_bytes and not pump.tally.dropped_bytes
    remedy = "start the server anew with something on its standard input"
    if unheard:
        remedy += "; --stdin pausable waits for the first listener"
    return RequestError(ErrorCode.SOURCE_ENDED, f"{NAME} has ended{why}", remedy=remedy)
