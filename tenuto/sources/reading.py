"""An open file that one thread reads while another may close it."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Protocol

from tenuto.convert import Converter
from tenuto.errors import SourceError
from tenuto.media import AudioFormat
from tenuto.sources.base import MAX_RUN_SIZE
from tenuto.sources.containers import ContainerData, open_container
from tenuto.sources.wav import WavData, WavSamples

__all__ = ["FileReader", "file_identity"]

CLOSE_PATIENCE = 2.0
"""Seconds a leaving listener waits for a read in flight; a decoder that hangs closes late."""

# Samples of all channels read at a time: no more than becomes about one run, nor than so
# many values in memory, whatever the header claims.
_MAX_VALUES = 128 * 1024


class _Samples(Protocol):
    """16-bit samples of a file: at most so many per call, none at the end."""

    def read(self, samples: int) -> bytes: ...

    def close(self) -> None: ...


class FileReader:
    """Runs of a file in the wanted format.

    A cancelled `to_thread` leaves its thread running: closing under it would let it read
    from whatever takes the descriptor's number next. So both hold the lock, and whoever
    comes last closes.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        identity: tuple[int, int],
        data: WavData | ContainerData,
        format: AudioFormat,
    ) -> None:
        self._path = path
        self._name = name
        self._identity = identity
        self._data = data
        self._lock = Lock()
        self._closing = False
        self._file: BinaryIO | None = None
        self._samples: _Samples | None = None
        self._converter: Converter | None = Converter(data, format)
        self._failure: SourceError | None = None
        self._ready = memoryview(b"")
        fitting = MAX_RUN_SIZE // format.bytes_per_sample * data.rate // format.rate
        self._block = max(1, min(fitting, _MAX_VALUES // data.channels))

    def read(self, size: int) -> bytes:
        """At most so many bytes; none at the end. Raises `SourceError`."""
        try:
            with self._lock:
                return b"" if self._closing else self._next(size)
        finally:
            self._settle(0)

    def close(self, patience: float = CLOSE_PATIENCE) -> None:
        """Idempotent."""
        self._closing = True
        self._settle(patience)

    def _settle(self, patience: float) -> None:
        if self._closing and self._lock.acquire(timeout=patience):
            try:
                if self._samples is not None:
                    self._samples.close()
                if self._file is not None:
                    self._file.close()
            finally:
                self._lock.release()

    def _next(self, size: int) -> bytes:
        while not self._ready and self._converter is not None:
            self._ready = memoryview(self._convert(self._converter))
        if not self._ready and self._failure is not None:
            raise self._failure
        run, self._ready = bytes(self._ready[:size]), self._ready[size:]
        return run

    def _convert(self, converter: Converter) -> bytes:
        try:
            samples = self._samples or self._open()
            run = samples.read(self._block)
        except OSError as error:
            self._failure = SourceError(f"{self._name} cannot be read: {error.strerror or error}")
        except SourceError as error:
            self._failure = error
        else:
            if run:
                return converter.push(run)
        # What the converter still holds was decoded before the end, or before the failure.
        self._converter = None
        return converter.finish()

    def _open(self) -> _Samples:
        self._file = self._path.open("rb")
        if file_identity(self._file) != self._identity:
            raise SourceError(f"{self._name} was replaced after it was opened")
        if isinstance(self._data, WavData):
            self._samples = WavSamples(self._file, self._data)
        else:
            self._samples = open_container(self._file, self._name, self._data)
        return self._samples


def file_identity(file: BinaryIO) -> tuple[int, int]:
    """Which file it is, whatever its name points to by now."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino
