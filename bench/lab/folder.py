"""Where results go: tried before anything is measured, and never half of a file in it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final, Self

from bench.lab.interruption import Interruption
from tenuto.cli.place import shown
from tenuto.errors import OperatorError

__all__ = ["REPORT", "RESULTS", "Folder"]

RESULTS: Final = "results.json"
REPORT: Final = "report.html"

_PART: Final = ".part"
_TRIAL: Final = b"\0" * 4096


class Folder:
    """A folder to write to while it is entered. Raises `OperatorError` if that cannot be."""

    def __init__(self, path: Path, interruption: Interruption, *, fresh: bool) -> None:
        """`fresh`: it is this run's alone, and what another has left there is not written over."""
        self.path = path
        self._interruption = interruption
        self._made: list[Path] = []
        self._undo = contextlib.ExitStack()
        if fresh and os.path.lexists(path / RESULTS):
            raise OperatorError(
                f"{shown(str(path))} holds the results of another run already",
                remedy="name another folder with --output",
            )
        try:
            self._make()
            if fresh:
                self._claim()
            self._write("trial", _TRIAL, keep=False)
        except (OSError, ValueError) as error:
            self.leave()
            self._undo.close()
            raise _unwritable(path, error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._undo.close()

    def _make(self) -> None:
        missing = [each for each in (self.path, *self.path.parents) if not os.path.lexists(each)]
        for each in reversed(missing):
            # Another run may make it at this moment.
            with contextlib.suppress(FileExistsError):
                each.mkdir()
                self._made.append(each)
        if not self.path.is_dir():
            raise NotADirectoryError(20, "it is no folder", str(self.path))

    def _claim(self) -> None:
        handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._undo.callback(os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BlockingIOError(error.errno, "another run is about to write there") from None
        except OSError:
            # Not every file system has locks; then nobody is warned.
            return

    def write(self, name: str, text: str) -> Path:
        """The whole of it, in place of what was there, or nothing."""
        try:
            self._write(name, text.encode(), keep=True)
        except OSError as error:
            raise _unwritable(self.path / name, error) from None
        return self.path / name

    def _write(self, name: str, data: bytes, *, keep: bool) -> None:
        part = self.path / f".{name}{_PART}"
        with self._interruption.shielded():
            try:
                with part.open("wb") as file:
                    file.write(data)
                    file.flush()
                    # A disk that is full may say so only here.
                    os.fsync(file.fileno())
                if keep:
                    part.replace(self.path / name)
            finally:
                with contextlib.suppress(OSError):
                    part.unlink(missing_ok=True)

    def leave(self) -> None:
        """Remove what was made here and is empty: nothing came to be."""
        for each in reversed(self._made):
            with contextlib.suppress(OSError):
                each.rmdir()


def _unwritable(path: Path, error: OSError | ValueError) -> OperatorError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return OperatorError(
        f"cannot write {shown(str(path))}: {why}",
        remedy="make room there, or name another folder with --output",
    )
