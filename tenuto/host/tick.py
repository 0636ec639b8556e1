"""The one owner of time: every 20 ms all that is due is done, together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tenuto.media import FRAME_DURATION

__all__ = ["Tick"]


class Tick:
    """Calls `on_tick(now)` every 20 ms while it runs; late ticks are not made up for.

    `worst_lag` is the longest that a tick came late, in seconds: a busy loop shows here.
    `beat` is when the last one was due, however late or, by a coarse timer, early it came.
    """

    def __init__(self, on_tick: Callable[[float], None]) -> None:
        self._on_tick = on_tick
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self.worst_lag = 0.0
        self.beat = 0.0

    def start(self) -> None:
        """Idempotent."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self.beat = loop.time()
            self._due = self.beat + FRAME_DURATION
            self._timer = loop.call_at(self._due, self._fire)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        lag = now - self._due
        self.worst_lag = max(self.worst_lag, lag)
        # Whole periods that were missed are skipped: pacing counts time, not ticks.
        self.beat = self._due + FRAME_DURATION * max(0, int(lag / FRAME_DURATION))
        self._due = self.beat + FRAME_DURATION
        self._timer = loop.call_at(self._due, self._fire)
        self._on_tick(now)
