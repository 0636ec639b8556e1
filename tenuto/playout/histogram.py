"""Delays of the frames that came, the newer the heavier, in whole numbers throughout."""

from __future__ import annotations

__all__ = ["CELLS", "CELL_TICKS", "DelayHistogram"]

CELL_TICKS = 5_000
CELLS = 200

# Forgetting by growth: a frame weighs 1000/983 of the one before it, which is as if every
# older weight were multiplied by 0.983, and touches one number instead of two hundred.
_GROWTH, _SHRINKAGE = 1000, 983
_FIRST_WEIGHT = 1 << 20
_HEAVY = 1 << 60
_RENORMALISE_BITS = 40

# At least 19 of 20 parts lie at or below the quantile.
_ABOVE = 20


class DelayHistogram:
    """`CELLS` cells of 5 ms, the last one open-ended, and one open group.

    All frames of a group count in the cell of its most delayed one. That may change while
    the group is open, so it joins the cells only when the next one opens.
    """

    def __init__(self) -> None:
        self._cells = [0] * CELLS
        self._weight = _FIRST_WEIGHT
        self._total = 0
        self._group = 0
        self._group_cell = 0
        self._top = 0

    def open_group(self) -> None:
        self._cells[self._group_cell] += self._group
        self._group = self._group_cell = 0

    def add(self, delay: int) -> None:
        """Count a frame in the open group."""
        self._group += self._weight
        self._total += self._weight
        self._group_cell = max(self._group_cell, min(delay // CELL_TICKS, CELLS - 1))
        self._top = max(self._top, self._group_cell)
        self._weight = self._weight * _GROWTH // _SHRINKAGE
        if self._weight >= _HEAVY:
            self._renormalise()

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
        return self._cells[cell] + (self._group if cell == self._group_cell else 0)

    def _renormalise(self) -> None:
        self._cells = [weight >> _RENORMALISE_BITS for weight in self._cells]
        self._group >>= _RENORMALISE_BITS
        self._weight >>= _RENORMALISE_BITS
        self._total = sum(self._cells) + self._group
        self._top = max([n for n, weight in enumerate(self._cells) if weight], default=0)
        self._top = max(self._top, self._group_cell)
