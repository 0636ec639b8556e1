"""Where frames go: a file, standard output, or (in `speaker`) a loudspeaker."""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from tenuto.cli.conform import Conform
from tenuto.cli.errors import OutputError
from tenuto.cli.sinkevents import SinkAccount
from tenuto.cli.wav import WavWriter
from tenuto.errors import OperatorError
from tenuto.media import AudioFormat, Frame

__all__ = [
    "FileSink",
    "Sink",
    "StdoutSink",
    "check_output",
    "check_place",
    "shown",
    "unwritable",
]

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
    if path.suffix.lower() not in (".wav", *_RAW):
        raise OperatorError(
            f"{shown(output)} has no ending that says how to write it",
            remedy="end it in .wav or .raw, or say - for raw samples on standard output",
        )
    check_place(output, "--output")


def check_place(output: str, option: str) -> None:
    """Whether a file can be written there; `option` is what named it."""
    if "\0" in output:
        raise OperatorError(f"{shown(output)} is no path", remedy="name a file")
    try:
        _check_place(Path(output))
    except OSError as error:
        raise unwritable(output, error, option) from None


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise OperatorError(f"{shown(str(path))} is a folder", remedy="name a file in it")
    if not path.parent.is_dir():
        raise OperatorError(
            f"there is no folder {shown(str(path.parent))}", remedy="make it, or name another"
        )
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OperatorError(
            f"no permission to write {shown(str(path))}", remedy="name a place that is yours"
        )


class FileSink:
    """A WAV file or raw samples, by the path's ending. A cut leaves a file of what came."""

    buffered = 0.0
    account = None

    def __init__(self, output: str, audio: AudioFormat) -> None:
        self._output = output
        self._conform = Conform(audio)
        try:
            self._file: BinaryIO = open(output, "wb")  # noqa: SIM115 - closed by `_close`
            wav = output.lower().endswith(".wav")
            self._wav = WavWriter(self._file, audio) if wav else None
        except OSError as error:
            raise unwritable(output, error) from None

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


class StdoutSink:
    """Raw samples on standard output, written by a thread of its own.

    A player that takes them slowly must not hold up the connection. The thread is a daemon,
    so that nobody waits for a reader that never reads. At most one batch is under way.
    """

    account = None

    def __init__(self, audio: AudioFormat) -> None:
        self._audio = audio
        self._conform = Conform(audio)
        self._loop = asyncio.get_running_loop()
        self._orders: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = (
            queue.SimpleQueue()
        )
        self._under_way = 0
        threading.Thread(target=self._work, name="stdout", daemon=True).start()

    @property
    def buffered(self) -> float:
        return self._under_way / self._audio.bytes_per_second

    async def write(self, frames: Sequence[Frame], audio: AudioFormat) -> None:
        await self._write(self._conform.push(b"".join(f.payload for f in frames), audio))

    async def _write(self, samples: bytes) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        self._under_way = len(samples)
        self._orders.put((samples, done))
        try:
            await done
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(error) from None
        self._under_way = 0

    async def finish(self) -> None:
        rest = self._conform.finish()
        if rest:
            await self._write(rest)
        self._orders.put(None)

    async def abandon(self) -> None:
        self._orders.put(None)

    def _work(self) -> None:
        descriptor = sys.stdout.fileno()
        while (order := self._orders.get()) is not None:
            samples, done = order
            failure = _write_all(descriptor, samples)
            with suppress(RuntimeError):  # the loop has ended without us
                self._loop.call_soon_threadsafe(_settle, done, failure)
            if failure is not None:
                return


def _write_all(descriptor: int, data: bytes) -> OSError | None:
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError as error:
        return error
    return None


def _settle(done: asyncio.Future[None], failure: OSError | None) -> None:
    if done.cancelled():
        return
    if failure is None:
        done.set_result(None)
    else:
        done.set_exception(failure)


def shown(text: str) -> str:
    """For one line on a terminal: escaped where it holds what would not stay in it."""
    return text if text.isprintable() else ascii(text)[1:-1]


def unwritable(output: str, error: OSError, option: str = "--output") -> OperatorError:
    return OperatorError(
        f"cannot write {shown(output)}: {error.strerror or error}",
        remedy=f"name another file with {option}",
    )
