"""The end of a process whose event loop does not come to it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from math import inf
from queue import Empty, SimpleQueue

__all__ = ["BEYOND_GRACE", "LastResort", "where_it_hangs"]

BEYOND_GRACE = 0.9
"""Seconds after the grace in which a process ends by itself, or else is ended."""


class LastResort:
    """Calls `end` in a thread of its own once a deadline has passed; the earliest one counts.

    A source may block the event loop, a task may take no notice of its cancellation: neither
    keeps the process. Only code that holds the interpreter's lock for ever does.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        # Its `put` may interrupt itself: a signal handler must not wait for a lock.
        self._deadlines: SimpleQueue[float] = SimpleQueue()
        threading.Thread(target=self._watch, name="last resort", daemon=True).start()

    def within(self, seconds: float) -> None:
        """It ends in so many seconds, unless it has ended by then. Signal handlers may call it."""
        self._deadlines.put(time.monotonic() + seconds)

    def _watch(self) -> None:
        deadline = inf
        while (left := deadline - time.monotonic()) > 0:
            try:
                given = self._deadlines.get(timeout=None if left == inf else left)
            except Empty:
                continue
            deadline = min(deadline, given)
        self._end()


def where_it_hangs() -> str:
    """The line that the main thread is at."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001
    if frame is None:
        return "?"
    return f"{frame.f_code.co_filename.rsplit('/', 1)[-1]}:{frame.f_lineno}"
