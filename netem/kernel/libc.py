"""The calls that Python does not have, or has since 3.12 only."""

import ctypes
import os
import sys
from functools import cache

from netem.errors import ImpairmentError

__all__ = [
    "CLONE_NEWNET",
    "CLONE_NEWNS",
    "CLONE_NEWPID",
    "CLONE_NEWUSER",
    "mount",
    "prctl",
    "require_linux",
    "setns",
    "unshare",
]

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000


def require_linux() -> None:
    """Say so where there are no namespaces at all, before a missing name says it worse."""
    if sys.platform != "linux":
        raise ImpairmentError(
            f"Linux only: {sys.platform} has no network namespaces. "
            "The relay driver works anywhere, for UDP."
        )


@cache
def _libc() -> ctypes.CDLL:
    require_linux()
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Of this thread; a user or pid namespace needs a process of one thread."""
    _check(_libc().unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    """Move this thread into the namespace that `fd` holds."""
    _check(_libc().setns(fd, kind), "setns")


def prctl(option: int, argument: int) -> None:
    _check(_libc().prctl(option, argument, 0, 0, 0), "prctl")


def mount(source: str, target: str, kind: str | None, flags: int) -> None:
    as_bytes = None if kind is None else kind.encode()
    _check(_libc().mount(source.encode(), target.encode(), as_bytes, flags, None), "mount")
