"""How long a packet is under way, and which packets overtake others."""

from math import pow
from statistics import NormalDist
from typing import Final, assert_never

from netem.link.streams import Draw
from netem.profile import Distribution, Jitter

__all__ = ["Travel", "deviation"]

_NORMAL: Final = NormalDist()
_CUT: Final = 4.0
_SMALLEST: Final = 2.0**-54
"""Stands for a draw of 0, of which the inverse of the normal distribution has no value."""
_SHAPE: Final = 3.0
"""Of the Pareto distribution, as in the table of tc-netem."""
_PARETO_MEAN: Final = 1.5
_PARETO_SPREAD: Final = 0.75
"""What that table divides by: the variance of the distribution, of which the root was meant."""


def deviation(distribution: Distribution, draw: float) -> float:
    """What a draw from 0 to 1 stands for, in units of the spread."""
    match distribution:
        case Distribution.NORMAL:
            return max(-_CUT, min(_CUT, _NORMAL.inv_cdf(draw or _SMALLEST)))
        case Distribution.UNIFORM:
            return 2.0 * draw - 1.0
        case Distribution.PARETO:
            late = pow(1.0 - draw, -1.0 / _SHAPE)
            return min(_CUT, (late - _PARETO_MEAN) / _PARETO_SPREAD)
        case _:
            assert_never(distribution)


class Travel:
    """Delay, jitter and reordering: when a packet has come through, to the bottleneck if any."""

    def __init__(
        self, delay: float, jitter: Jitter | None, reorder: float, jitters: Draw, skips: Draw
    ) -> None:
        self._delay = delay
        self._jitter = jitter
        self._reorder = reorder
        self._jitters = jitters
        self._skips = skips
        self._latest = float("-inf")
        self._ordered = jitter is None or not jitter.reordering
        self._last_ordered = float("-inf")
        self.overtaking = reorder > 0.0 or not self._ordered
        """Whether what sets out later may be due earlier."""
        self.reordered = 0
        """Packets due before one that came earlier."""

    def due(self, now: float) -> float:
        delay = self._delay
        if self._jitter is not None:
            delay += self._jitter.spread * deviation(self._jitter.distribution, self._jitters())
            delay = max(0.0, delay)
        if self._reorder and self._skips() < self._reorder:
            due = now
        else:
            due = now + delay
            if self._ordered:
                # What keeps a packet keeps those behind it, as the queue of a radio link does.
                due = self._last_ordered = max(due, self._last_ordered)
        if due < self._latest:
            self.reordered += 1
        else:
            self._latest = due
        return due
