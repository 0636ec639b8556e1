"""Where in its text a session was at a frame, also when the frame itself is gone."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence

__all__ = ["MAX_KEPT_MARKS", "MarkHistory"]

MAX_KEPT_MARKS = 1024
"""Marks of a session that are remembered: at three words a second more than five minutes."""


class MarkHistory:
    """The last marks of an epoch, oldest first; of one frame only the last counts."""

    __slots__ = ("_marks",)

    def __init__(self) -> None:
        # Pairs of numbers: Python's collector of cycles soon passes them by.
        self._marks: deque[tuple[int, int]] = deque(maxlen=MAX_KEPT_MARKS)

    def __len__(self) -> int:
        return len(self._marks)

    def add(self, sequence: int, text_offsets: Sequence[int]) -> None:
        """These parts of the text begin to sound in that frame."""
        self._marks.append((sequence, text_offsets[-1]))

    def at(self, sequence: int) -> int | None:
        """The text offset that is spoken in that frame; None where that is not known."""
        place = bisect_right(self._marks, sequence, key=lambda mark: mark[0])
        return self._marks[place - 1][1] if place else None

    def clear(self) -> None:
        self._marks.clear()
