"""How long a frame should wait before it is played, from how late frames came."""

from __future__ import annotations

from tenuto.playout.arrival import Arrival
from tenuto.playout.histogram import CELL_TICKS, DelayHistogram

__all__ = ["Target"]

_START = 80_000
_FLOOR = 15_000
_CAP = 1_000_000

# Ticks that the target may fall in so many ticks of time: 25 ms in a second.
_FALL, _FALL_TICKS = 25, 1_000


class Target:
    """The 0.95 quantile of the greatest delays: followed upwards at once, downwards slowly."""

    def __init__(self) -> None:
        self.value = _START
        self.histogram = DelayHistogram()
        self._at: int | None = None

    @property
    def quantile(self) -> int:
        """Upper edge of the quantile's cell, in ticks, without floor, cap and slowness."""
        return (self.histogram.quantile + 1) * CELL_TICKS

    def observe(self, arrival: Arrival, now: int) -> None:
        if arrival.opens:
            self.histogram.open_interval()
        self.histogram.add(arrival.spread)
        wanted = min(max(self.quantile, _FLOOR), _CAP)
        elapsed = 0 if self._at is None else now - self._at
        self.value = max(wanted, self.value - elapsed * _FALL // _FALL_TICKS)
        self._at = now
