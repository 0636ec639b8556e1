"""The signals that we know what to do with, as far as this system has them."""

import signal
from typing import Final

__all__ = ["ENDING", "FORWARDED"]


def _of(*names: str) -> frozenset[signal.Signals]:
    return frozenset(signal.Signals[name] for name in names if hasattr(signal, name))


ENDING: Final = _of("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
"""They ask a program to end."""

FORWARDED: Final = ENDING | _of("SIGUSR1", "SIGUSR2")
"""They are passed on to the program that we run."""
