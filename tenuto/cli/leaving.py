"""How the process ends where a foreign library is still at work in a thread of ours."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

__all__ = ["hurried", "hurry", "leave"]

_state = {"hurried": False}


def hurry() -> None:
    """From now on the process is to end without waiting for libraries to clean up.

    PortAudio crashes where it is ended while a thread still opens a device, and waits for ever
    where that hangs.
    """
    _state["hurried"] = True


def hurried() -> bool:
    return _state["hurried"]


def leave(status: int) -> None:
    """End at once, if so it must be; all that we had to say is said."""
    if not hurried():
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)
