"""PCM WAV files, read off the event loop."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from threading import Lock
from typing import BinaryIO

from tenuto.errors import ErrorCode, RequestError, SourceError
from tenuto.media import AudioFormat
from tenuto.sources.base import MAX_RUN_SIZE
from tenuto.sources.wav import WavData, read_header

__all__ = ["FileSource", "MediaFolder", "open_file"]

_SHOWN_NAME = 80


@dataclass(frozen=True, slots=True)
class FileSource:
    """The samples of one WAV file, byte for byte; `name` is what clients may see of it.

    No file stays open before `stream` begins, so a session that nobody attaches costs no
    descriptor. A file that was cut short is played as far as it goes.
    """

    path: Path
    name: str
    data: WavData
    identity: tuple[int, int]

    @property
    def kind(self) -> str:
        return "file"

    @property
    def format(self) -> AudioFormat:
        return self.data.format

    @property
    def pausable(self) -> bool:
        return True

    @property
    def patience(self) -> float | None:
        return 30.0

    async def stream(self) -> AsyncGenerator[bytes, None]:
        # Any size would do; whole frames spare the framer its carrying.
        most = MAX_RUN_SIZE - MAX_RUN_SIZE % self.format.frame_size
        reader = _Reader(self)
        try:
            while run := await asyncio.to_thread(reader.read, most):
                yield run
        finally:
            await asyncio.to_thread(reader.close)


async def open_file(path: str | Path) -> FileSource:
    """Check a WAV file's header; for paths that the operator or the user himself named.

    Raises `RequestError`: UNKNOWN_FILE where it cannot be read, UNSUPPORTED_AUDIO where
    it is not 16-bit PCM.
    """
    return await asyncio.to_thread(_open, Path(path), repr(_shorten(str(path))))


@dataclass(frozen=True, slots=True)
class MediaFolder:
    """The one folder from which clients may name files; its own path is never told."""

    root: Path

    async def open(self, name: str) -> FileSource:
        """Open a file below the root by its relative name, with `/` between folders.

        Raises as `open_file` does. A name that leads out of the root, directly or by a
        symbolic link, is answered like one that does not exist.
        """
        return await asyncio.to_thread(self._open, name)

    def _open(self, name: str) -> FileSource:
        shown = repr(_shorten(name))
        try:
            path = self._resolve(name)
        except (OSError, RuntimeError, ValueError):
            path = None
        if path is None:
            raise RequestError(
                ErrorCode.UNKNOWN_FILE,
                f"there is no file {shown}",
                remedy="name a file of the media folder by its relative path",
            )
        return _open(path, shown)

    def _resolve(self, name: str) -> Path | None:
        # The Windows rules cover drives and backslashes, which are plain names elsewhere.
        parts = PureWindowsPath(name)
        if not name or "\0" in name or parts.drive or parts.root or ".." in parts.parts:
            return None
        root = self.root.resolve(strict=True)
        path = (root / name).resolve(strict=True)
        return path if path != root and path.is_relative_to(root) else None


class _Reader:
    """An open file that one thread reads while another may close it.

    A cancelled `to_thread` leaves its thread running: closing under it would let it read
    from whatever takes the descriptor's number next.
    """

    def __init__(self, source: FileSource) -> None:
        self._source = source
        self._lock = Lock()
        self._file: BinaryIO | None = None
        self._left = source.data.size
        self._closed = False

    def read(self, size: int) -> bytes:
        with self._lock:
            if self._closed:
                return b""
            try:
                if self._file is None:
                    self._file = self._open()
                run = self._file.read(size if self._left is None else min(size, self._left))
            except OSError as error:
                raise SourceError(
                    f"{self._source.name} cannot be read: {error.strerror}"
                ) from error
            if self._left is not None:
                self._left -= len(run)
            return run

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._file is not None:
                self._file.close()

    def _open(self) -> BinaryIO:
        file = self._source.path.open("rb")
        if _identity(file) != self._source.identity:
            file.close()
            raise SourceError(f"{self._source.name} was replaced after it was opened")
        file.seek(self._source.data.offset)
        return file


def _open(path: Path, shown: str) -> FileSource:
    try:
        # Opening a FIFO would wait for its writer: look first.
        if not stat.S_ISREG(path.stat().st_mode):
            what = "a folder" if path.is_dir() else "no regular file"
            raise RequestError(ErrorCode.UNKNOWN_FILE, f"{shown} is {what}")
        with path.open("rb") as file:
            return FileSource(path, shown, read_header(file, shown), _identity(file))
    except FileNotFoundError as error:
        raise RequestError(ErrorCode.UNKNOWN_FILE, f"there is no file {shown}") from error
    except OSError as error:
        raise RequestError(
            ErrorCode.UNKNOWN_FILE, f"{shown} cannot be read: {error.strerror}"
        ) from error
    except ValueError as error:  # A NUL or a lone surrogate in the name.
        raise RequestError(ErrorCode.UNKNOWN_FILE, f"{shown} is no file name") from error


def _identity(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino


def _shorten(name: str) -> str:
    return name if len(name) <= _SHOWN_NAME else f"{name[:_SHOWN_NAME]}..."
