"""A histogram of lateness in bounded memory."""

from typing import Final

__all__ = ["Histogram"]

_STEP: Final = 1e-5
"""Ten microseconds: as fine as the figure means anything."""
_BINS: Final = 5_000
"""50 ms; what is later only counts as such."""


class Histogram:
    def __init__(self) -> None:
        self._bins = [0] * (_BINS + 1)
        self._count = 0
        self._total = 0.0
        self._max = 0.0

    def add(self, lateness: float) -> None:
        # Called for every packet; min() and max() would take half of its time.
        place = int(lateness / _STEP)
        self._bins[place if place < _BINS else _BINS] += 1  # noqa: FURB136
        self._count += 1
        self._total += lateness
        if lateness > self._max:
            self._max = lateness

    def quantile(self, fraction: float) -> float:
        """An upper bound, within a step; the maximum for what lies beyond the last bin."""
        wanted, seen = fraction * self._count, 0
        for number, found in enumerate(self._bins[:-1]):
            seen += found
            if found and seen >= wanted:
                return min((number + 1) * _STEP, self._max)
        return self._max

    def summary(self) -> dict[str, float]:
        return {
            "count": self._count,
            "p50": self.quantile(0.5),
            "p99": self.quantile(0.99),
            "max": self._max,
            "mean": self._total / self._count if self._count else 0.0,
        }
