"""Which frames have reached a listener, told from how many bytes of its stream have."""

from __future__ import annotations

from collections import deque
from itertools import islice

__all__ = ["MAX_MARKS", "Confirmations"]

MAX_MARKS = 64
"""Writes remembered; beyond it every second one is forgotten, so that less is known of the rest."""


class Confirmations:
    """Doors count bytes, sessions count frames: this remembers which byte ends which frame.

    All totals count from the same byte, whichever the door chooses, and never fall.
    """

    __slots__ = ("_marks", "_until")

    def __init__(self, start: int) -> None:
        """Frames count from `start`."""
        self._until = start
        self._marks: deque[tuple[int, int]] = deque()
        """Bytes written in all, and one past the last frame that is whole in them."""

    @property
    def waiting(self) -> bool:
        """Are there frames written that are not known to have arrived?"""
        return bool(self._marks)

    def wrote(self, total: int, until: int) -> None:
        """With `total` bytes written, the frames below `until` are all in them."""
        if until == self._until:
            return  # There was no frame in this write: it confirms nothing.
        self._until = until
        marks = self._marks
        if len(marks) >= MAX_MARKS:
            # The newest stays: the end of what was written must not wait for a next write.
            self._marks = marks = deque(islice(marks, 1, None, 2))
        marks.append((total, until))

    def reached(self, total: int) -> int | None:
        """The listener has the first `total` bytes: one past the last frame that it now has.

        None where that is no news.
        """
        marks = self._marks
        until = None
        while marks and marks[0][0] <= total:
            until = marks.popleft()[1]
        return until
