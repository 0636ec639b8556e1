"""The terminal, left as it was found."""

import contextlib
import os
import signal
from collections.abc import Iterator

__all__ = ["kept_terminal"]


@contextlib.contextmanager
def kept_terminal() -> Iterator[bool]:
    """Whether there is a terminal; it is given back to our process group at the end.

    A shell that ran behind the link made itself the foreground, and cannot name us to hand it
    back: we are outside its pid namespace.
    """
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        yield False
        return
    try:
        ours = _foreground(terminal) == os.getpgrp()
        yield True
        if ours and _foreground(terminal) != os.getpgrp():
            _take_back(terminal)
    finally:
        os.close(terminal)


def _foreground(terminal: int) -> int | None:
    try:
        return os.tcgetpgrp(terminal)
    except OSError:
        return None


def _take_back(terminal: int) -> None:
    # Asked from the background, the terminal would stop us for it.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    with contextlib.suppress(OSError):
        os.tcsetpgrp(terminal, os.getpgrp())
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
