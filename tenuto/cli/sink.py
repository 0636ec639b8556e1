"""Where frames go: a file, or a pipe (`pipesink`) or a loudspeaker (`speaker`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from tenuto.cli.conform import Conform
from tenuto.cli.pipesink import PipeSink
from tenuto.cli.place import check_place, is_pipe, open_place, shown, unwritable
from tenuto.cli.sinkevents import SinkAccount
from tenuto.cli.wav import WavWriter, wav_header
from tenuto.errors import OperatorError
from tenuto.media import AudioFormat, Frame

__all__ = ["FileSink", "Sink", "check_output", "open_sink"]

_RAW = (".raw", ".pcm")


class Sink(Protocol):
    """Takes frames as fast as it can use them."""

    @property
    def buffered(self) -> float:
        """Seconds of audio taken and not yet played or written."""
        ...

    @property
    def account(self) -> SinkAccount | None:
        """More of it, where there is more to say."""
        ...

    @property
    def heard(self) -> int | None:
        """The last frame that was heard, where somebody listens."""
        ...

    async def open(self) -> None:
        """Get ready, while frames are written already."""
        ...

    def flush(self, base: int) -> None:
        """What lies below frame `base` is not to be heard any more; a file keeps what it has."""
        ...

    def pause(self, at: int) -> None:
        """The source pauses before frame `at`; those before it may still be on their way here."""
        ...

    def resume(self) -> None:
        """The source goes on."""
        ...

    async def write(self, frames: Sequence[Frame], audio: AudioFormat) -> None:
        """Frames in order, all of this format."""
        ...

    async def finish(self) -> None:
        """All frames have come: return when they are played or written."""
        ...

    async def abandon(self) -> None:
        """No more will come and something went wrong: leave behind what is usable."""
        ...


def check_output(output: str) -> None:
    """Refuse before anything is asked of a server; an `OperatorError` says why."""
    if output == "-":
        if sys.stdout.isatty():
            raise OperatorError(
                "raw audio would fill the terminal",
                remedy="pipe it, such as: | ffplay -nodisp -f s16le -ar 22050 -",
            )
        return
    path = Path(output)
    if output == os.devnull:
        return
    if output and path.suffix.lower() not in (".wav", *_RAW):
        raise OperatorError(
            f"{shown(output)} has no ending that says how to write it",
            remedy="end it in .wav or .raw, or say - for raw samples on standard output",
        )
    check_place(output, "--output")


def open_sink(output: str, audio: AudioFormat) -> Sink:
    """For a path: a WAV file or raw samples, by its ending. Raises `OperatorError`."""
    descriptor = open_place(output)
    wav = output.lower().endswith(".wav")
    if not is_pipe(descriptor):
        return FileSink(output, open(descriptor, "wb"), audio, wav=wav)
    os.set_blocking(descriptor, True)
    head = wav_header(audio, None) if wav else b""
    return PipeSink(descriptor, audio, lambda error: unwritable(output, error), head)


class FileSink:
    """A WAV file or raw samples. A cut leaves a file of what came."""

    buffered = 0.0
    account = None
    heard = None

    def flush(self, base: int) -> None:
        pass

    def pause(self, at: int) -> None:
        pass

    def resume(self) -> None:
        pass

    def __init__(self, output: str, file: BinaryIO, audio: AudioFormat, *, wav: bool) -> None:
        self._output = output
        self._conform = Conform(audio)
        self._file = file
        try:
            self._wav = WavWriter(file, audio) if wav else None
        except OSError as error:
            with suppress(OSError):
                file.close()
            raise unwritable(output, error) from None

    async def open(self) -> None:
        pass

    async def write(self, frames: Sequence[Frame], audio: AudioFormat) -> None:
        samples = b"".join(frame.payload for frame in frames)
        self._write(self._conform.push(samples, audio))

    async def finish(self) -> None:
        try:
            self._close()
        except OSError as error:
            raise unwritable(self._output, error) from None

    async def abandon(self) -> None:
        if not self._file.closed:
            with suppress(OSError, OperatorError):
                self._close()

    def _write(self, samples: bytes) -> None:
        try:
            (self._wav or self._file).write(samples)
        except OSError as error:
            raise unwritable(self._output, error) from None

    def _close(self) -> None:
        try:
            self._write(self._conform.finish())
            if self._wav is not None:
                self._wav.finish()
        finally:
            self._file.close()
