"""Waiting for a command: signals go to it, and the path is watched meanwhile."""

import signal
from collections.abc import Callable
from types import TracebackType
from typing import Final, Protocol, Self

from netem.kernel.signals import ENDING, FORWARDED

__all__ = ["Running", "SignalWatch", "conduct"]

_SI_KERNEL: Final = 0x80
"""sigaction(2): a terminal's key, not a process, sent it."""

LOOK: Final = 0.25
"""Seconds between looks at the path, for what sends no signal."""


class Running(Protocol):
    """A command, however it was started."""

    def heard(self, number: int, *, of_terminal: bool) -> bool:
        """Whether this signal, which we got, has reached it without us."""
        ...

    def poll(self) -> int | None: ...
    def wait(self) -> int: ...
    def send(self, number: int) -> None: ...
    def kill(self) -> None: ...


class SignalWatch:
    """Signals wait here to be asked for, instead of interrupting; those ignored stay so."""

    def __enter__(self) -> Self:
        self.watched = {
            number for number in FORWARDED if signal.getsignal(number) != signal.SIG_IGN
        }
        self.watched.add(signal.SIGCHLD)
        self.before = signal.pthread_sigmask(signal.SIG_BLOCK, self.watched)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What came too late for the command is no reason to end otherwise than it did.
        while signal.sigtimedwait(self.watched, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)

    def next(self, patience: float) -> tuple[int, bool] | None:
        """A signal but SIGCHLD, and whether it is a key of the terminal; None after a while."""
        caught = signal.sigtimedwait(self.watched, patience)
        # Stopped and continued while it waits, Python returns a record that nobody has filled in.
        if caught is None or caught.si_signo not in self.watched - {signal.SIGCHLD}:
            return None
        return caught.si_signo, caught.si_code == _SI_KERNEL


def conduct(command: Running, watch: SignalWatch, check: Callable[[], None]) -> int:
    """The command's status; the second signal that asks it to end kills it.

    `check` raises when waiting has lost its point.
    """
    endings = 0
    while (status := command.poll()) is None:
        check()
        caught = watch.next(LOOK)
        if caught is None:
            continue
        number, of_terminal = caught
        endings += number in ENDING
        if endings > 1:
            command.kill()
            command.wait()
            return 128 + number
        if not command.heard(number, of_terminal=of_terminal):
            command.send(number)
    return status
