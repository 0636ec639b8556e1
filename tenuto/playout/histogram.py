"""The greatest delay of each half second, the newer the heavier, in whole numbers throughout."""

from __future__ import annotations

__all__ = ["CELLS", "CELL_TICKS", "DelayHistogram"]

CELL_TICKS = 5_000
CELLS = 200

# Forgetting by growth: an interval weighs 1000/983 of the one before it, which is as if every
# older weight were multiplied by 0.983, and touches one number instead of two hundred. At first,
# while little is known, it weighs more: (n + 2)/n behind n others.
_GROWTH, _SHRINKAGE = 1000, 983
_RAMP = 115
_FIRST_WEIGHT = 1 << 20
_HEAVY = 1 << 60
_RENORMALISE_BITS = 40

# At least 19 of 20 parts lie at or below the quantile.
_ABOVE = 20


class DelayHistogram:
    """`CELLS` cells of 5 ms, the last one open-ended, and one open interval.

    An interval counts in the cell of its most delayed frame. That may change while it is open,
    so it joins the cells only when the next one opens.
    """

    def __init__(self) -> None:
        self._cells = [0] * CELLS
        self._intervals = 0
        self._open = 0
        """The weight of the open interval."""
        self._open_cell = 0
        self._total = 0
        self._top = 0

    def open_interval(self) -> None:
        self._cells[self._open_cell] += self._open
        self._open_cell = 0
        self._open = self._next_weight()
        self._total += self._open
        self._intervals += 1
        if self._open >= _HEAVY:
            self._renormalise()

    def add(self, delay: int) -> None:
        """A frame of the open interval came; one must have been opened."""
        self._open_cell = max(self._open_cell, min(delay // CELL_TICKS, CELLS - 1))
        self._top = max(self._top, self._open_cell)

    @property
    def quantile(self) -> int:
        """The cell at or below which 95 % of the weight lies; something has been added."""
        cell, above = self._top, 0
        while (above + self._at(cell)) * _ABOVE <= self._total:
            above += self._at(cell)
            cell -= 1
        return cell

    def shares(self) -> tuple[float, ...]:
        """The part of the whole in each cell; all zero before the first frame."""
        return tuple(self._at(cell) / max(1, self._total) for cell in range(CELLS))

    def _at(self, cell: int) -> int:
        return self._cells[cell] + (self._open if cell == self._open_cell else 0)

    def _next_weight(self) -> int:
        before = self._intervals
        if not before:
            return _FIRST_WEIGHT
        if before <= _RAMP:
            return self._open * (before + 2) // before
        return self._open * _GROWTH // _SHRINKAGE

    def _renormalise(self) -> None:
        self._cells = [weight >> _RENORMALISE_BITS for weight in self._cells]
        self._open >>= _RENORMALISE_BITS
        self._total = sum(self._cells) + self._open
        self._top = max([n for n, weight in enumerate(self._cells) if weight], default=0)
