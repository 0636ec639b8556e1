"""Frames by their sequence: what is held, what was given up, what came too often."""

from __future__ import annotations

from collections import deque
from enum import Enum, auto

from tenuto.media import Frame

__all__ = ["FrameStore", "Verdict"]

_REMEMBERED = 256
"""Places given up that a late frame is told by; one that comes later still is a duplicate."""


class Verdict(Enum):
    """What became of a frame that came."""

    KEPT = auto()
    LATE = auto()
    DUPLICATE = auto()
    OVERFLOW = auto()


class FrameStore:
    """Holds `capacity` places from the next one to play.

    What comes beyond them is refused, not kept at the cost of what plays first.
    """

    def __init__(self, start: int, capacity: int) -> None:
        self.next = start
        self._capacity = capacity
        self._held: dict[int, Frame] = {}
        self._given_up: deque[int] = deque(maxlen=_REMEMBERED)
        self._newest = start - 1

    def __bool__(self) -> bool:
        return bool(self._held)

    @property
    def depth(self) -> int:
        """Places from the next one to play to the newest held, missing ones included."""
        return max(0, self._newest + 1 - self.next)

    def insert(self, frame: Frame) -> Verdict:
        sequence = frame.sequence
        if sequence < self.next:
            if sequence not in self._given_up:
                return Verdict.DUPLICATE
            self._given_up.remove(sequence)
            return Verdict.LATE
        if sequence in self._held:
            return Verdict.DUPLICATE
        if sequence >= self.next + self._capacity:
            return Verdict.OVERFLOW
        self._held[sequence] = frame
        self._newest = max(self._newest, sequence)
        return Verdict.KEPT

    def drop_below(self, base: int) -> int:
        """Nothing below `base` is to be played any more; how many frames held go with it."""
        kept = {sequence: frame for sequence, frame in self._held.items() if sequence >= base}
        dropped = len(self._held) - len(kept)
        self._held = kept
        self._given_up.clear()
        self.next = base
        self._newest = max(kept, default=base - 1)
        return dropped

    def jump(self, frame: Frame) -> int:
        """Keep a frame beyond the capacity, where nothing else is held; returns what it skips."""
        skipped = frame.sequence - self.next
        self.next = frame.sequence
        self._held[frame.sequence] = frame
        self._newest = frame.sequence
        return skipped

    def take(self) -> Frame | None:
        """The next frame; None gives its place up."""
        frame = self._held.pop(self.next, None)
        if frame is None:
            self._given_up.append(self.next)
        self.next += 1
        return frame

    def give_up(self, until: int) -> int:
        """Give up the places below `until`, of which none is held, and say how many."""
        count = max(0, until - self.next)
        self._given_up.extend(range(self.next, self.next + count))
        self.next += count
        return count

    def skip(self, most: int) -> int:
        """Give up as many as `most` places before the first frame held, and say how many."""
        skipped = 0
        while self._held and skipped < most and self.next not in self._held:
            self._given_up.append(self.next)
            self.next += 1
            skipped += 1
        return skipped
