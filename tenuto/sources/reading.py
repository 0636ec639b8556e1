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

# Samples of all channels read at a time: no more than becomes about one run, nor than so
# many values in memory, whatever the header claims.
_MAX_VALUES = 128 * 1024

# Runs decoded to be left out before the thread is given back.
_LEFT_OUT_AT_ONCE = 16


class _Samples(Protocol):
    """16-bit samples of a file: at most so many per call, none at the end."""

    @property
    def repaired(self) -> int: ...

    @property
    def stray_bytes(self) -> int: ...

    def read(self, samples: int) -> bytes: ...

    def close(self) -> None: ...


class FileReader:
    """Runs of a file in the wanted format, without the first `skip` samples of that format.

    Whoever leaves may leave a read behind: closing under it would let it read from whatever
    takes the descriptor's number next. So both hold the lock, and whoever comes last closes.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        identity: tuple[int, int],
        data: WavData | ContainerData,
        format: AudioFormat,
        skip: int = 0,
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
        self._sample_size = format.bytes_per_sample
        self._skip = skip * format.bytes_per_sample
        """Bytes still to be left out."""
        self._as_stored = (data.rate, data.channels) == (format.rate, format.channels)
        self._given = 0
        self._strays = 0
        self._block = max(1, min(fitting, _MAX_VALUES // data.channels))

    def read(self, size: int) -> bytes:
        """At most so many bytes; none at the end. Raises `SourceError`."""
        try:
            with self._lock:
                return b"" if self._closing else self._next(size)
        finally:
            self._settle()

    def leave_out(self) -> bool:
        """Some of what is to be left out; True while there is more of it.

        Where samples are played as they are stored it is passed over, else it is decoded.
        """
        try:
            with self._lock:
                for _ in range(_LEFT_OUT_AT_ONCE):
                    if self._closing or not self._left_out_more():
                        return False
                return True
        finally:
            self._settle()

    def leave(self) -> bool:
        """Read no more; True where `close` is still to be called, as no read is in flight."""
        self._closing = True
        return not self._lock.locked()

    def close(self) -> None:
        """Idempotent; returns at once, and a read in flight closes when it returns."""
        self._closing = True
        self._settle()

    @property
    def repaired(self) -> int:
        """Floats that were no number or infinite, so far."""
        return self._samples.repaired if self._samples is not None else 0

    @property
    def stray_bytes(self) -> int:
        """Bytes behind the last whole sample, once all has been read."""
        if self._samples is None or self._converter is not None:
            return 0
        return self._samples.stray_bytes + self._strays

    def _settle(self) -> None:
        if self._closing and self._lock.acquire(blocking=False):
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

    def _left_out_more(self) -> bool:
        if self._converter is not None:
            self._ready = memoryview(self._convert(self._converter))
        left_out = min(self._skip, len(self._ready))
        self._ready = self._ready[left_out:]
        self._skip -= left_out
        return self._skip > 0 and self._converter is not None

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
                return self._count(converter.push(run))
        # What the converter still holds was decoded before the end, or before the failure.
        self._converter = None
        rest = self._count(converter.finish())
        self._strays = converter.stray_bytes + self._given % self._sample_size
        return rest

    def _count(self, run: bytes) -> bytes:
        self._given += len(run)
        return run

    def _left(self) -> bool:
        return self._closing

    def _open(self) -> _Samples:
        self._file = self._path.open("rb")
        if file_identity(self._file) != self._identity:
            raise SourceError(f"{self._name} was replaced after it was opened")
        if isinstance(self._data, WavData):
            self._samples = samples = WavSamples(self._file, self._data)
            if self._as_stored:
                samples.leave_out(self._skip // self._sample_size)
                self._skip = 0
        else:
            self._samples = open_container(self._file, self._name, self._data, self._left)
        return self._samples


def file_identity(file: BinaryIO) -> tuple[int, int]:
    """Which file it is, whatever its name points to by now."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino
