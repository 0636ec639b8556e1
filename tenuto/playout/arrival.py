"""How much later than the quickest of late each frame came: base, delays, intervals."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tenuto.playout.ticks import FRAME_TICKS

__all__ = ["Arrival", "Arrivals", "SlidingMinimum"]

_BASE_CELLS = 20
_BASE_CELL = 100_000
_INTERVAL = 500_000
_GAP = 250_000
_SHIFT = 20_000
_PAUSE = 1_000_000


class SlidingMinimum:
    """The least value of the newest `cells` cells of time, each `width` ticks long."""

    def __init__(self, cells: int, width: int) -> None:
        self._cells = cells
        self._width = width
        # Ascending in both; one entry for each cell at most, so `cells` entries in all.
        self._minima: deque[tuple[int, int]] = deque()

    @property
    def value(self) -> int | None:
        return self._minima[0][1] if self._minima else None

    def clear(self) -> None:
        self._minima.clear()

    def advance(self, now: int) -> None:
        """Forget what lies in cells that are too old at `now`."""
        oldest = now // self._width - self._cells
        while self._minima and self._minima[0][0] <= oldest:
            self._minima.popleft()

    def add(self, value: int, now: int) -> None:
        self.advance(now)
        cell = now // self._width
        minima = self._minima
        while minima and minima[-1][1] >= value:
            minima.pop()
        if not minima or minima[-1][0] != cell:
            minima.append((cell, value))


@dataclass(frozen=True, slots=True)
class Arrival:
    """One frame's delay above the base before it, and what it makes of its interval.

    `spread` is the greatest delay of the interval so far, less what all its frames have in
    common; `opens` says that the frame is the first of one.
    """

    delay: int
    spread: int
    opens: bool


class Arrivals:
    """Offsets (arrival minus place in media time) and their sliding minimum, the base.

    A frame is compared with the base before it: one that lowers the base has no delay, so
    that a lead being built, or caught up, is no jitter. Where every frame of an interval is
    late by a frame or more, the path or the source has changed for good, and the base moves
    there: no jitter either. After an outage or a pause everything begins anew.
    """

    def __init__(self) -> None:
        self._minimum = SlidingMinimum(_BASE_CELLS, _BASE_CELL)
        self._last: int | None = None
        self._opened: int | None = None
        # Of the open interval.
        self._least = 0
        self._lowest = 0
        self._greatest = 0

    @property
    def base(self) -> int | None:
        return self._minimum.value

    def restart(self) -> None:
        """The source pauses: the next frame is compared with none before it."""
        self._minimum.clear()
        self._last = None

    def observe(self, sequence: int, now: int) -> Arrival:
        """Take note of a frame; `now` must not lie before that of the last call."""
        offset = now - sequence * FRAME_TICKS
        opens = (
            self._opened is None
            or self._last is None
            or now - self._opened >= _INTERVAL
            or now - self._last >= _GAP
        )
        self._forget(now, opens=opens)
        base = self._minimum.value
        self._minimum.add(offset, now)
        self._last = now
        delay = 0 if base is None else max(0, offset - base)
        if opens:
            self._opened = now
            self._least, self._lowest, self._greatest = offset, delay, delay
        else:
            self._least = min(self._least, offset)
            self._lowest = min(self._lowest, delay)
            self._greatest = max(self._greatest, delay)
        common = self._lowest if self._lowest >= _SHIFT else 0
        return Arrival(delay, self._greatest - common, opens)

    def _forget(self, now: int, *, opens: bool) -> None:
        """What no longer counts when a frame comes at `now`."""
        minimum, least = self._minimum, self._least
        if self._last is not None and now - self._last > _PAUSE:
            minimum.clear()
            return
        minimum.advance(now)
        if opens and minimum.value is not None and least - minimum.value >= _SHIFT:
            minimum.clear()
            minimum.add(least, now)
