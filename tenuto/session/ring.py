"""The frames of a session: a window of the newest, found by sequence in O(1)."""

from __future__ import annotations

from tenuto.media import Frame

__all__ = ["Ring"]


class Ring:
    """Holds the newest `capacity` frames; appending one more drops the oldest.

    Sequences are consecutive: `end` is the next to be appended and `first` the oldest still
    held (`first == end` while empty).
    """

    __slots__ = ("_capacity", "_origin", "_slots", "end", "first")

    def __init__(self, capacity: int, start: int = 0) -> None:
        if capacity < 1:
            raise ValueError(f"a ring of {capacity} frames")
        self._capacity = capacity
        self._slots: list[Frame] = []
        self._origin = start
        """The sequence in slot 0, modulo the capacity."""
        self.first = start
        self.end = start

    def __len__(self) -> int:
        return self.end - self.first

    @property
    def capacity(self) -> int:
        return self._capacity

    def append(self, frame: Frame) -> None:
        """Add the frame whose sequence is `end`; `ValueError` for any other."""
        if frame.sequence != self.end:
            raise ValueError(f"frame {frame.sequence} where {self.end} comes next")
        if len(self._slots) < self._capacity:
            # A short session never pays for the whole window.
            self._slots.append(frame)
        else:
            self._slots[(self.end - self._origin) % self._capacity] = frame
            self.first += 1
        self.end += 1

    def read(self, sequence: int, count: int) -> list[Frame]:
        """Up to `count` frames from `sequence` on; `KeyError` where it is no longer held."""
        if sequence < self.first:
            raise KeyError(sequence)
        count = min(count, self.end - sequence)
        if count <= 0:
            return []
        index = (sequence - self._origin) % self._capacity
        frames = self._slots[index : index + count]
        if len(frames) < count:
            frames += self._slots[: count - len(frames)]
        return frames

    def widen(self, capacity: int) -> None:
        """Hold more frames from now on; a smaller capacity changes nothing."""
        if capacity <= self._capacity:
            return
        self._slots = self.read(self.first, len(self))
        self._origin = self.first
        self._capacity = capacity

    def clear(self) -> None:
        """Let go of all frames; `end` stays."""
        self._slots = []
        self._origin = self.first = self.end
