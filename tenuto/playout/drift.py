"""Whether the sink's clock runs away from the source's, told from where the base lies for long."""

from __future__ import annotations

from tenuto.playout.arrival import SlidingMinimum

__all__ = ["DriftAnchor"]

_WINDOW_CELLS = 16
_WINDOW_CELL = 1_000_000
_SETTLING = 5_000_000
_JUMP = 20_000


class DriftAnchor:
    """Where the playout delay stood when playout became steady, to be held there.

    It is measured against the least base of 16 s: a queue that builds up slowly and drains
    at once, again and again, looks like drift to a shorter memory, and correcting its slow
    half alone would add delay with every round. What moves that minimum by more than 20 ms
    at once is no drift either (1 % in a cell of 1 s is 10 ms): the anchor moves along,
    though never above where it first settled.
    """

    def __init__(self) -> None:
        self._minimum = SlidingMinimum(_WINDOW_CELLS, _WINDOW_CELL)
        self._least = 0
        self._anchor: int | None = None
        self._ceiling = 0
        self._settled = 0
        self._now: int | None = None
        self._steady = False

    def restart(self) -> None:
        """Playout begins, or begins again: nothing known holds."""
        self._anchor = None
        self._steady = False

    def follow(self, position: int, base: int, now: int) -> None:
        """To be called at each pull that plays.

        `position` is `now` against the media time of the frame to be played.
        """
        # A sink may say that its next block sounds a little earlier than the last one did.
        now = self._now = now if self._now is None else max(now, self._now)
        if self._anchor is None:
            self._minimum.clear()
            self._settled = now + _SETTLING
        self._minimum.add(base, now)
        least = self._minimum.value
        assert least is not None
        moved, self._least = least - self._least, least
        self._steady = self._anchor is not None and now >= self._settled
        if not self._steady or self._anchor is None:
            self._anchor = self._ceiling = position - least
        elif abs(moved) > _JUMP:
            self._anchor = min(self._anchor - moved, self._ceiling)

    def error(self, position: int) -> int:
        """How far the delay at this position lies above the anchor; 0 while it settles."""
        if not self._steady or self._anchor is None:
            return 0
        return position - self._least - self._anchor
