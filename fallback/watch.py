"""One timer that follows a deadline which moves far more often than it passes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Watch"]


class Watch:
    """Calls `look(now)`, which says when it wants to be called again, until `stop`.

    Setting and cancelling a timer for each write would cost more than the write's bookkeeping.
    """

    def __init__(self, look: Callable[[float], float], first: float) -> None:
        """The first look comes after `first` seconds."""
        self._look = look
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(first, self._fire)

    def stop(self) -> None:
        self._timer.cancel()

    def _fire(self) -> None:
        now = self._loop.time()
        self._timer = self._loop.call_at(max(now, self._look(now)), self._fire)
