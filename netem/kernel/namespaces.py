"""Network namespaces without names, held by file descriptors.

The kernel ends such a namespace with its last process and descriptor, and with it all devices,
addresses, routes and rules in it: whoever is killed leaves nothing behind.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from netem.errors import ImpairmentError
from netem.kernel.libc import CLONE_NEWNET, CLONE_NEWUSER, require_linux, setns, unshare

__all__ = ["Namespace", "become_root_of_own", "map_ids"]

_OF_THIS_THREAD = "/proc/thread-self/ns/net"


class Namespace:
    """A network namespace, alive while this object is open or a process is in it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def current(cls) -> Self:
        """The one that this thread is in."""
        require_linux()
        return cls(os.open(_OF_THIS_THREAD, os.O_RDONLY | os.O_CLOEXEC))

    @classmethod
    def new(cls) -> Self:
        """An empty one; this thread stays where it is."""
        with contextlib.closing(cls.current()) as home:
            try:
                # Whether there is a way back is asked before leaving.
                setns(home.fd, CLONE_NEWNET)
                unshare(CLONE_NEWNET)
            except OSError as error:
                raise ImpairmentError(
                    f"No network namespace can be made here: {error.strerror}. Be root, or start "
                    "this under `unshare -rn`; `python -m netem probe` says what is possible."
                ) from None
            try:
                return cls.current()
            finally:
                setns(home.fd, CLONE_NEWNET)

    @classmethod
    def copy_of(cls, other: "Namespace") -> Self:
        """The same one once more, to be closed apart."""
        return cls(os.dup(other.fd))

    @property
    def path(self) -> str:
        """A name for programs that inherit `fd`."""
        return f"/proc/self/fd/{self.fd}"

    @property
    def inode(self) -> int:
        """What tells it from others, as in the links of /proc/PID/ns/net."""
        return os.fstat(self.fd).st_ino

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """This thread is in here meanwhile: its sockets, its children, its /proc/sys/net.

        Not across an `await`: other tasks of the thread would be in here too.
        """
        with contextlib.closing(self.current()) as home:
            setns(self.fd, CLONE_NEWNET)
            try:
                yield
            finally:
                setns(home.fd, CLONE_NEWNET)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def become_root_of_own() -> None:
    """Move this process into a user namespace of its own, and an empty network that belongs to it.

    There it may make more of them. For good, and for a process of one thread.
    """
    user, group = os.geteuid(), os.getegid()
    if threading.active_count() > 1:
        raise ImpairmentError("Only a process of one thread can enter a user namespace.")
    try:
        # The network goes along, for there would be no way back to one of the user left behind.
        unshare(CLONE_NEWUSER | CLONE_NEWNET)
        map_ids(inside=(0, 0), outside=(user, group))
    except OSError as error:
        raise ImpairmentError(
            f"No user namespace can be made here: {error.strerror}. Be root, or allow them, or use "
            "--driver relay, for UDP only; `python -m netem probe` says how."
        ) from None


def map_ids(*, inside: tuple[int, int], outside: tuple[int, int]) -> None:
    """Name the user and group of a user namespace just entered; there can be only these two."""
    # user_namespaces(7): without privilege over the parent, setgroups has to be given up first.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{inside[0]} {outside[0]} 1\n")
    Path("/proc/self/gid_map").write_text(f"{inside[1]} {outside[1]} 1\n")
