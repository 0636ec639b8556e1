"""One script at a time changes `.venv`; the others wait and say so."""

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Turn", "take_turn"]

Turn = int
"""The descriptor that holds the lock. A child process that inherits it keeps holding it."""


@contextmanager
def take_turn(path: Path, on_wait: Callable[[str], None]) -> Iterator[Turn]:
    """Hold the lock file at `path`; `on_wait` hears once who has it, if somebody does.

    The system lets go of it when the last process that has the descriptor ends, however it ends.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _try_lock(descriptor):
            on_wait(_holder(path))
            _wait_for_lock(descriptor)
        _sign(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


def _sign(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, f"{os.getpid()}\n".encode())


def _holder(path: Path) -> str:
    try:
        pid = path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:  # Windows: what is locked cannot be read either.
        pid = ""
    return f"process {pid}" if pid.isdigit() else "another process"


if sys.platform == "win32":
    import msvcrt

    # Beyond the text, which stays readable that way.
    _LOCKED_OFFSET = 1 << 20

    def _try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, _LOCKED_OFFSET, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _wait_for_lock(descriptor: int) -> None:
        while not _try_lock(descriptor):
            time.sleep(0.2)

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            # A file system without locks: better no turn than no set-up.
            return error.errno in {errno.ENOLCK, errno.ENOTSUP}
        return True

    def _wait_for_lock(descriptor: int) -> None:
        # Not a blocking flock: some network file systems never wake it.
        while not _try_lock(descriptor):
            time.sleep(0.2)
