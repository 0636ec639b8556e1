"""Standard input, output and error, also where they are closed or full."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import IO, Any, TextIO

__all__ = ["is_full", "silence", "stand_in"]

# What writing to a file, a terminal or a closed descriptor fails with.
_FULL = {errno.EAGAIN, errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC}


def stand_in() -> None:
    """Replace the streams that were closed when the process began, which Python makes None.

    Reading and writing then fail as they do on a closed descriptor, and no file opened later
    takes its number, to be filled with what somebody prints. What goes to standard error is
    lost in silence: whoever closed it wants no word.
    """
    if sys.stdin is None:
        sys.stdin = _open_nothing(os.O_WRONLY, "r")
    if sys.stdout is None:
        sys.stdout = _open_nothing(os.O_RDONLY, "w")
    if sys.stderr is None:
        sys.stderr = _open_nothing(os.O_WRONLY, "w")


def silence(stream: TextIO) -> None:
    """Let what `stream` still holds go nowhere: the interpreter flushes it when it ends."""
    # Under a test's runner it has no descriptor.
    with open(os.devnull, "wb") as nowhere, suppress(OSError, ValueError):
        os.dup2(nowhere.fileno(), stream.fileno())


def is_full(error: OSError) -> bool:
    """Whether it came from writing to a standard stream, and not from a path or a network."""
    return error.errno in _FULL and error.filename is None


def _open_nothing(flags: int, mode: str) -> IO[Any]:
    descriptor = os.open(os.devnull, flags)
    os.set_inheritable(descriptor, True)  # a child must not meet a closed one either
    return open(descriptor, mode, encoding="utf-8", errors="replace", closefd=False)
