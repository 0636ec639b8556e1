"""Two readings of a sound card's clock: when its samples sound, and how fast it takes them."""

from __future__ import annotations

__all__ = ["RateMeter", "SinkClock"]

_JUMP = 0.1
"""Seconds: a reading further off is no jitter, but a stall or another device."""
_GAIN = 1 / 16

_START = 0.5
"""Seconds: a device that begins fills its own buffers first, as fast as it can."""
_WINDOW = 1.0
_STALL = 0.25
"""Seconds without a call, after which the count begins again: it says nothing of a rate."""
_TOLERANCE = 0.10


class SinkClock:
    """When the next sample given to the device will sound.

    A device tells the time of each block with jitter, and the samples it takes do not: the
    time moves on by them and follows the readings slowly. Pure.
    """

    def __init__(self) -> None:
        self._next: float | None = None

    def read(self, reading: float) -> float:
        """The device says that its next sample sounds at `reading`."""
        time = self._next
        if time is None or abs(reading - time) > _JUMP:
            self._next = reading
        else:
            self._next = time + _GAIN * (reading - time)
        return self._next

    def passed(self, duration: float) -> None:
        """The device took samples for so many seconds."""
        if self._next is not None:
            self._next += duration


class RateMeter:
    """Whether a device takes samples at the rate it states. Pure.

    `fault` is the rate it takes instead, once two windows of a second in turn were off by
    more than a tenth in the same direction.
    """

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._last: float | None = None
        self._begun = 0.0
        self._count = 0
        self._before: float | None = None
        self.fault: int | None = None

    def took(self, samples: int, now: float) -> None:
        """The device took so many samples (per channel) at this moment."""
        stall = max(_STALL, 4 * samples / self._rate)
        if self._last is None or now - self._last > stall:
            self._restart(now + _START)
        self._last = now
        if now < self._begun:
            return
        elapsed = now - self._begun
        if elapsed >= _WINDOW:
            self._judge(self._count / elapsed)
            self._begun, self._count = now, 0
        self._count += samples

    def _restart(self, begin: float) -> None:
        self._begun, self._count, self._before = begin, 0, None

    def _judge(self, measured: float) -> None:
        off = measured / self._rate - 1
        before, self._before = self._before, off
        if before is None or abs(off) <= _TOLERANCE or abs(before) <= _TOLERANCE:
            return
        if (off > 0) == (before > 0):
            self.fault = round(measured)
