"""The narrow place of a link: when a packet has gone through it, or that its queue is full."""

from bisect import bisect_left
from collections import deque
from typing import Final, Protocol, assert_never

from netem.profile import Bottleneck, Rate, Schedule

__all__ = ["OPPORTUNITY", "Narrow", "bottleneck"]

OPPORTUNITY: Final = 1500
"""Bytes that may leave at each moment of a mahimahi trace."""


class Narrow(Protocol):
    def departure(self, size: int, now: float) -> float | None:
        """When the last byte of a packet of `size` that comes now leaves; None: no room for it."""


def bottleneck(value: Bottleneck, started: float) -> Narrow:
    match value:
        case Rate():
            return _ConstantRate(value)
        case Schedule():
            return _Trace(value, started)
        case _:
            assert_never(value)


class _Queue:
    """The moments at which those inside leave; they never fall."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._leaving: deque[float] = deque()

    def full(self, now: float) -> bool:
        leaving = self._leaving
        while leaving and leaving[0] <= now:
            leaving.popleft()
        return len(leaving) >= self._limit

    def add(self, at: float) -> None:
        self._leaving.append(at)


class _ConstantRate:
    def __init__(self, rate: Rate) -> None:
        if rate.bits_per_second <= 0.0:
            raise ValueError(f"nothing passes at {rate.bits_per_second} bits per second")
        self._seconds_per_byte = 8.0 / rate.bits_per_second
        self._queue = _Queue(rate.queue)
        self._free_at = float("-inf")

    def departure(self, size: int, now: float) -> float | None:
        if self._queue.full(now):
            return None
        self._free_at = max(self._free_at, now) + size * self._seconds_per_byte
        self._queue.add(self._free_at)
        return self._free_at


class _Trace:
    """What mahimahi's link queue does with its trace.

    A packet may span opportunities and several may share one, but an opportunity serves only those
    that were there before it: what is left of it is lost. The moment itself is too late.
    """

    def __init__(self, schedule: Schedule, started: float) -> None:
        moments = schedule.opportunities
        if not moments or moments[-1] <= 0:
            raise ValueError(f"{schedule.name}: a trace must last longer than 0 ms")
        self._moments = moments
        self._period = moments[-1]
        self._started = started
        self._queue = _Queue(schedule.queue)
        self._cycle, self._index = 0, 0
        self._at = self._moment()
        self._left = OPPORTUNITY

    def _moment(self) -> float:
        milliseconds = self._cycle * self._period + self._moments[self._index]
        return self._started + milliseconds / 1000.0

    def _advance(self) -> None:
        self._index += 1
        if self._index == len(self._moments):
            self._cycle, self._index = self._cycle + 1, 0
        self._at = self._moment()
        self._left = OPPORTUNITY

    def _skip_past(self, now: float) -> None:
        """Go to the first opportunity after `now`, however long nobody came."""
        # A millisecond less, for rounding must not skip one: the rest of the way is walked.
        cycle, into = divmod((now - self._started) * 1000.0 - 1.0, self._period)
        place = (int(cycle), bisect_left(self._moments, into))
        if place > (self._cycle, self._index):
            self._cycle, self._index = place
            self._at = self._moment()
        while self._at <= now:
            self._advance()
        self._left = OPPORTUNITY

    def departure(self, size: int, now: float) -> float | None:
        if self._queue.full(now):
            return None
        if self._at <= now:
            self._skip_past(now)
        while size > self._left:
            size -= self._left
            self._advance()
        self._left -= size
        self._queue.add(self._at)
        return self._at
