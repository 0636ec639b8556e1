"""Places on disk that are to be written: whether they can be, and opening them without waiting."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from tenuto.errors import OperatorError

__all__ = ["check_place", "is_pipe", "open_place", "same_place", "shown", "unwritable"]

_MODE = 0o666
_FLAGS: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def check_place(output: str, option: str) -> None:
    """Whether a file can be written there; `option` is what named it."""
    if not output:
        raise OperatorError(f"{option} is empty", remedy="name a file")
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


def open_place(output: str, option: str = "--output") -> int:
    """A descriptor to write to, emptied if it is a file. Raises `OperatorError`.

    Nothing waits: a named pipe must have its reader. Writes to it do not wait either, until
    `os.set_blocking` says so.
    """
    try:
        return os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FLAGS, _MODE)
    except OSError as error:
        if error.errno == errno.ENXIO and Path(output).is_fifo():
            raise OperatorError(
                f"nobody reads the named pipe {shown(output)}", remedy="start its reader first"
            ) from None
        raise unwritable(output, error, option) from None


def is_pipe(descriptor: int) -> bool:
    """Whether what is written there waits for a reader."""
    return stat.S_ISFIFO(os.fstat(descriptor).st_mode)


def same_place(one: str, other: str) -> bool:
    """Whether both names lead to one file or pipe; `-` is standard output."""
    first, second = _status(one), _status(other)
    if first is None or second is None:
        return "-" not in (one, other) and os.path.realpath(one) == os.path.realpath(other)
    # Of a device like /dev/null nothing is left that could be mixed up.
    return os.path.samestat(first, second) and not stat.S_ISCHR(first.st_mode)


def _status(output: str) -> os.stat_result | None:
    with suppress(OSError, ValueError):
        return os.fstat(sys.stdout.fileno()) if output == "-" else os.stat(output)
    return None


def shown(text: str) -> str:
    """For one line on a terminal: escaped where it holds what would not stay in it."""
    return text if text.isprintable() else ascii(text)[1:-1]


def unwritable(output: str, error: OSError, option: str = "--output") -> OperatorError:
    return OperatorError(
        f"cannot write {shown(output)}: {error.strerror or error}",
        remedy=f"name another file with {option}",
    )
