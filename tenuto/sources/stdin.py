"""The process's standard input as a source: one session for all who listen to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import stat
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from tenuto.errors import ErrorCode, OperatorError, RequestError
from tenuto.media import FRAMES_PER_SECOND, AudioFormat
from tenuto.media.format import MAX_FRAME_SIZE
from tenuto.sources.pump import Pump, PumpTally
from tenuto.sources.tone import MAX_CHANNELS, MAX_RATE, MIN_RATE
from tenuto.sources.wav_stream import RawStream, Run, WavStream

__all__ = ["STDIN_MODES", "StandardInput", "StdinSource", "parse_stdin_format"]

STDIN_MODES = ("live", "pausable")

NAME = "standard input"

HEADER_PATIENCE = 10.0
"""Seconds that a request waits for the header that says what standard input is."""

_READABLE = (stat.S_ISFIFO, stat.S_ISREG, stat.S_ISSOCK, stat.S_ISCHR)

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
    rate, channels = int(match["rate"]), int(match["channels"] or 1)
    frame_size = 2 * channels * rate // FRAMES_PER_SECOND
    why, remedy = "", ""
    if not MIN_RATE <= rate <= MAX_RATE:
        why, remedy = f"{rate} samples/s", f"give {MIN_RATE} to {MAX_RATE}"
    elif not 1 <= channels <= MAX_CHANNELS:
        why, remedy = f"{channels} channels", f"give 1 to {MAX_CHANNELS}"
    elif frame_size > MAX_FRAME_SIZE:
        why = f"20 ms of {channels} channels at {rate} Hz are {frame_size} bytes"
        remedy = f"{MAX_FRAME_SIZE} fit a record: lower the rate or the channels"
    if why:
        raise OperatorError(f"the format {text!r} of standard input: {why}", remedy=remedy)
    try:
        return AudioFormat(rate, channels)
    except RequestError as error:
        raise OperatorError(
            f"the format {text!r} of standard input: {error.message}", remedy=error.remedy
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

    @property
    def held(self) -> int:
        """Bytes of audio that wait for a session."""
        return self._pump.held

    def refuse(self, refusal: RequestError) -> None:
        """Whoever waits for a header, now or later, is told this instead."""
        self._pump.refuse(refusal)

    async def open(self, *, wait: bool = True) -> StdinSource:
        """A source that goes on where the last one stopped.

        Without `wait` no header is waited for: where it has not come the format is a guess.

        Raises `RequestError`: SOURCE_ENDED after the end, UNSUPPORTED_AUDIO where it is no
        WAV, SOURCE_FAILED where nothing has come that would say what it is.
        """
        pump = self._pump
        if wait:
            await self._begun()
        if pump.over:
            if isinstance(pump.failure, RequestError):
                raise RequestError(
                    pump.failure.code, pump.failure.message, remedy=pump.failure.remedy
                )
            if self._played or pump.tally.skipped_bytes or pump.failure is not None:
                raise _ended(self.live, pump)
        return StdinSource(pump.format or AudioFormat(), not self.live, self)

    async def _begun(self) -> None:
        try:
            async with asyncio.timeout(HEADER_PATIENCE):
                await self._pump.begun()
        except TimeoutError:
            raise RequestError(
                ErrorCode.SOURCE_FAILED,
                f"{NAME} has not begun: no whole WAV header within {HEADER_PATIENCE:g} s",
                remedy="start what writes to it, then ask again",
            ) from None

    async def runs(self, source: StdinSource) -> AsyncGenerator[bytes | AudioFormat, None]:
        """What comes from now on, for this source alone."""
        self._played = True
        pump, current = self._pump, source.format
        pump.begin(source)
        held: Run | None = None
        try:
            while (held := await pump.take(source)) is not None:
                format, samples = held
                if format != current:
                    current = format
                    yield format
                held = None  # What is yielded is the session's.
                yield samples
        finally:
            pump.end(source, held)


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
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise OperatorError(f"{NAME} is a directory", remedy=remedy)
        if not any(kind(mode) for kind in _READABLE):
            raise OperatorError(f"{NAME} is no pipe, file, socket or device", remedy=remedy)
        # Nothing is read, but it fails where nothing can be.
        with contextlib.suppress(BlockingIOError):
            os.read(descriptor, 0)
    except OSError as error:
        raise OperatorError(f"{NAME} cannot be read: {error.strerror}", remedy=remedy) from None


def _ended(live: bool, pump: Pump) -> RequestError:
    why = f" ({pump.failure.message})" if pump.failure is not None else ""
    unheard = live and pump.tally.skipped_bytes and not pump.tally.dropped_bytes
    remedy = "start the server anew with something on its standard input"
    if unheard:
        remedy += "; --stdin pausable waits for the first listener"
    return RequestError(ErrorCode.SOURCE_ENDED, f"{NAME} has ended{why}", remedy=remedy)
