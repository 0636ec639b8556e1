"""The frames of a session: a window of the newest, found by sequence in O(1)."""

from __future__ import annotations

from tenuto.media import Frame

__all__ = ["Ring"]


class Ring:
    """Holds the newest `capacity` frames; appending one more drops the oldest.

    Sequences are consecutive: `end` is the next to be appended and `first` the oldest still
    held (`first == end` while empty).
    """

    # Frames are taken apart, and put together again for those who read them. Bytes and numbers
    # are nothing to Python's collector of cycles; tens of thousands of frames are, and it would
    # stop every listener's audio for as long as it looks through them.
    __slots__ = ("_capacity", "_marks", "_origin", "_payloads", "_samples", "end", "first")

    def __init__(self, capacity: int, start: int = 0) -> None:
        if capacity < 1:
            raise ValueError(f"a ring of {capacity} frames")
        self._capacity = capacity
        self._payloads: list[bytes] = []
        self._samples: list[int] = []
        self._marks: dict[int, tuple[int, ...]] = {}
        """By sequence, where there are any."""
        self._origin = start
        """The sequence in slot 0, modulo the capacity."""
        self.first = start
        self.end = start

    def __len__(self) -> int:
        return self.end - self.first

    @property
    def capacity(self) -> int:
        return self._capacity

    @property
    def full(self) -> bool:
        """Will the next frame push out the oldest?"""
        return len(self._payloads) >= self._capacity

    def append(self, frame: Frame) -> None:
        """Add the frame whose sequence is `end`; `ValueError` for any other."""
        if frame.sequence != self.end:
            raise ValueError(f"frame {frame.sequence} where {self.end} comes next")
        if len(self._payloads) < self._capacity:
            # A short session never pays for the whole window.
            self._payloads.append(frame.payload)
            self._samples.append(frame.samples)
        else:
            slot = (self.end - self._origin) % self._capacity
            self._payloads[slot] = frame.payload
            self._samples[slot] = frame.samples
            if self._marks:
                self._marks.pop(self.first, None)
            self.first += 1
        if frame.marks:
            self._marks[self.end] = frame.marks
        self.end += 1

    def read(self, sequence: int, count: int) -> list[Frame]:
        """Up to `count` frames from `sequence` on; `KeyError` where it is no longer held."""
        if sequence < self.first:
            raise KeyError(sequence)
        count = min(count, self.end - sequence)
        if count <= 0:
            return []
        payloads, samples = self._slice(sequence, count)
        numbers = range(sequence, sequence + count)
        if not self._marks:
            return list(map(Frame, numbers, payloads, samples))
        marks = [self._marks.get(number, ()) for number in numbers]
        return list(map(Frame, numbers, payloads, samples, marks))

    def widen(self, capacity: int) -> None:
        """Hold more frames from now on; a smaller capacity changes nothing."""
        if capacity <= self._capacity:
            return
        self._payloads, self._samples = self._slice(self.first, len(self))
        self._origin = self.first
        self._capacity = capacity

    def clear(self) -> None:
        """Let go of all frames; `end` stays."""
        self._payloads, self._samples, self._marks = [], [], {}
        self._origin = self.first = self.end

    def _slice(self, sequence: int, count: int) -> tuple[list[bytes], list[int]]:
        """What `count` frames from `sequence` on are made of; all of them are held."""
        index = (sequence - self._origin) % self._capacity
        payloads = self._payloads[index : index + count]
        samples = self._samples[index : index + count]
        missing = count - len(payloads)
        if missing:
            payloads += self._payloads[:missing]
            samples += self._samples[:missing]
        return payloads, samples
