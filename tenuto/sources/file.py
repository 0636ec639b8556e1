"""Files of sound, read and converted off the event loop."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO

from tenuto.convert import Converter
from tenuto.errors import ErrorCode, RequestError
from tenuto.media import AudioFormat
from tenuto.sources.base import MAX_RUN_SIZE
from tenuto.sources.containers import ContainerData, read_container
from tenuto.sources.formats import Wanted, check_shape
from tenuto.sources.readers import GivenUp, Readers, shared_readers
from tenuto.sources.reading import FileReader, file_identity
from tenuto.sources.recognise import HEAD_SIZE, recognise
from tenuto.sources.wav import WavData, is_wav, read_header, refuse_file

__all__ = ["FileSource", "MediaFolder", "open_file"]

_SHOWN_NAME = 80
_NAME_ANOTHER = "name a sound file that is there"
_AS_IT_IS = Wanted()


@dataclass(frozen=True, slots=True)
class FileSource:
    """The samples of one file in `format`; `name` is what clients may see of it.

    16-bit PCM of that format is given byte for byte. No file stays open before `stream`
    begins, so a session that nobody attaches costs no descriptor. A file that was cut short
    is played as far as it goes.
    """

    path: Path
    name: str
    data: WavData | ContainerData
    format: AudioFormat
    identity: tuple[int, int]
    skip: int = 0
    """Frames of 20 ms that are left out at the beginning."""
    readers: Readers = field(default_factory=shared_readers, repr=False, compare=False)

    @property
    def kind(self) -> str:
        return "file"

    @property
    def pausable(self) -> bool:
        return True

    @property
    def patience(self) -> float | None:
        return 30.0

    async def stream(self) -> AsyncGenerator[bytes, None]:
        # Any size would do; whole frames spare the framer its carrying.
        most = MAX_RUN_SIZE - MAX_RUN_SIZE % self.format.frame_size
        skip = self.skip * self.format.samples_per_frame
        reader = FileReader(self.path, self.name, self.identity, self.data, self.format, skip)
        try:
            while skip and await self.readers.read(reader.leave_out):
                yield b""  # A sign of life: to decode an hour takes its time.
            while run := await self.readers.read(partial(reader.read, most)):
                yield run
        finally:
            self.readers.tally.repaired_samples += reader.repaired
            self.readers.tally.stray_bytes += reader.stray_bytes
            # Closing may hang as well; and if a read hangs, nobody waits for that.
            if reader.leave():
                await self.readers.close(reader.close)


async def open_file(path: str | Path, wanted: Wanted = _AS_IT_IS) -> FileSource:
    """Check a file's header; for paths that the operator or the user himself named.

    Raises `RequestError`: UNKNOWN_FILE where it cannot be read, UNSUPPORTED_AUDIO where it
    cannot be decoded or converted, and what `Readers.open` raises.
    """
    shown = repr(_shorten(str(path)))
    readers = shared_readers()
    return await readers.open(partial(_open, Path(path), shown, wanted, readers), shown)


@dataclass(frozen=True, slots=True)
class MediaFolder:
    """The one folder from which clients may name files; its own path is never told."""

    root: Path
    windows: bool = os.name == "nt"
    """Do backslashes part folders and colons drives here?"""
    readers: Readers = field(default_factory=shared_readers, repr=False, compare=False)

    async def open(self, name: str, wanted: Wanted = _AS_IT_IS) -> FileSource:
        """Open a file below the root by its relative name, with `/` between folders.

        Raises as `open_file` does. A name that leads out of the root, directly or by a
        symbolic link, is answered like one that does not exist.
        """
        shown = repr(_shorten(name))
        return await self.readers.open(partial(self._open, name, shown, wanted), shown)

    def _open(self, name: str, shown: str, wanted: Wanted, given_up: GivenUp) -> FileSource:
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
        return _open(path, shown, wanted, self.readers, given_up)

    def _resolve(self, name: str) -> Path | None:
        # Elsewhere drives and backslashes are plain names.
        parts = PureWindowsPath(name) if self.windows else PurePosixPath(name)
        if not name or "\0" in name or parts.drive or parts.root or ".." in parts.parts:
            return None
        root = self.root.resolve(strict=True)
        path = (root / name).resolve(strict=True)
        return path if path != root and path.is_relative_to(root) else None


def _open(
    path: Path, shown: str, wanted: Wanted, readers: Readers, given_up: GivenUp
) -> FileSource:
    try:
        # Opening a FIFO would wait for its writer: look first.
        if not stat.S_ISREG(path.stat().st_mode):
            what = "a folder" if path.is_dir() else "no regular file"
            raise RequestError(ErrorCode.UNKNOWN_FILE, f"{shown} is {what}", remedy=_NAME_ANOTHER)
        with path.open("rb") as file:
            data = _read_data(file, shown, given_up)
            identity = file_identity(file)
    except FileNotFoundError as error:
        raise RequestError(
            ErrorCode.UNKNOWN_FILE, f"there is no file {shown}", remedy=_NAME_ANOTHER
        ) from error
    except OSError as error:
        raise RequestError(
            ErrorCode.UNKNOWN_FILE,
            f"{shown} cannot be read: {error.strerror}",
            remedy="name another, or let the server read it",
        ) from error
    except ValueError as error:  # A NUL or a lone surrogate in the name.
        raise RequestError(
            ErrorCode.UNKNOWN_FILE, f"{shown} is no file name", remedy=_NAME_ANOTHER
        ) from error
    format = wanted.of(data)
    Converter(data, format)  # Refused here rather than with its first run.
    return FileSource(path, shown, data, format, identity, readers=readers)


def _read_data(file: BinaryIO, shown: str, given_up: GivenUp) -> WavData | ContainerData:
    head = file.read(HEAD_SIZE)
    data: WavData | ContainerData
    if is_wav(head):
        data = read_header(file, shown)
    else:
        content = recognise(head)
        if not content.decodable:
            refuse_file(shown, content.what)
        data = read_container(file, shown, content.what, given_up)
    check_shape(data, shown)
    return data


def _shorten(name: str) -> str:
    return name if len(name) <= _SHOWN_NAME else f"{name[:_SHOWN_NAME]}..."
