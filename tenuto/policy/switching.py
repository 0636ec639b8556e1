"""When a stream changes its transport although it need not: for quality, and back to QUIC."""

from __future__ import annotations

from collections import deque

__all__ = ["LateShare", "Switches"]

_BUCKETS = 30
"""Parts of the window that are forgotten one by one."""

_FEW = 50
"""Frames; of fewer no share is told."""


class LateShare:
    """How many of the frames of the last `window` seconds came too late to be played."""

    def __init__(self, window: float, share: float) -> None:
        self._window = window
        self._share = share
        self._buckets: deque[tuple[float, int, int]] = deque()
        self._frames = self._late = 0
        self._since: float | None = None

    def add(self, frames: int, now: float, *, late: bool) -> None:
        """So many came `now`."""
        if self._since is None:
            self._since = now
        late_frames = frames if late else 0
        self._frames += frames
        self._late += late_frames
        if self._buckets and now < self._buckets[-1][0] + self._window / _BUCKETS:
            began, some, of_them = self._buckets.pop()
            self._buckets.append((began, some + frames, of_them + late_frames))
        else:
            self._buckets.append((now, frames, late_frames))
        self._forget(now)

    def bad(self, now: float) -> bool:
        """Is it more than the share, over a whole window?"""
        self._forget(now)
        whole = self._since is not None and now - self._since >= self._window
        return whole and self._frames >= _FEW and self._late > self._share * self._frames

    def clear(self) -> None:
        """What came over another leg tells nothing of this one."""
        self._buckets.clear()
        self._frames = self._late = 0
        self._since = None

    def _forget(self, now: float) -> None:
        while self._buckets and self._buckets[0][0] < now - self._window:
            _, frames, late = self._buckets.popleft()
            self._frames -= frames
            self._late -= late


class Switches:
    """At most one switch that nothing forced, or attempt at one, per `interval` seconds.

    A stream that has just begun has just chosen. A switch that was forced counts as well: right
    behind it there is none for pleasure.
    """

    def __init__(self, interval: float, now: float) -> None:
        self._interval = interval
        self._last = now

    def may(self, now: float) -> bool:
        return now >= self._last + self._interval

    def made(self, now: float) -> None:
        """There was one, or an attempt at one."""
        self._last = now

    def upgrade_at(self, now: float, reprobe_in: float) -> float:
        """When QUIC may be tried again, that is to be left alone for `reprobe_in` seconds."""
        return max(now + reprobe_in, self._last + self._interval)
