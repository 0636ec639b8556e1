"""A jitter buffer with a fixed target: reorders, drops duplicates, conceals at the deadline."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tenuto.media import FRAME_DURATION, Frame
from tenuto.playout.outcome import Concealed, Ended, Outcome, Played, Waiting

__all__ = ["JitterBuffer", "PlayoutCounters"]

_REMEMBERED = 256
"""Concealed places that a late frame is told by; one that comes later still is a duplicate."""


@dataclass(slots=True)
class PlayoutCounters:
    """Frames, each counted once; `underruns` counts episodes."""

    received: int = 0
    played: int = 0
    duplicates: int = 0
    """Came once more, or lie before the start."""
    late: int = 0
    """Came after their place was concealed."""
    overflowed: int = 0
    """Refused because the buffer was full."""
    concealed: int = 0
    underruns: int = 0


class JitterBuffer:
    """Frames in by arrival, outcomes out by the sink's clock: one `pull` for each 20 ms.

    Playout begins once `target` seconds of audio are held, or at END if there is less. A
    frame missing while later ones are held is concealed at its turn. With nothing held at
    all it waits for the target again: one underrun. Holds `capacity` frames at most; what
    comes beyond them is refused, not kept at the cost of what plays first.
    """

    def __init__(self, start: int, *, target: float = 0.080, capacity: int = 2048) -> None:
        self._next = start
        self._target = min(max(1, round(target / FRAME_DURATION)), capacity)
        self._capacity = capacity
        self._held: dict[int, Frame] = {}
        self._concealed: deque[int] = deque(maxlen=_REMEMBERED)
        self._newest = start - 1
        self._end: int | None = None
        self._filling = True
        self.counters = PlayoutCounters()

    @property
    def depth(self) -> int:
        """Frames from the next one to play to the newest held, missing ones included."""
        return max(0, self._newest + 1 - self._next)

    def insert(self, frame: Frame) -> bool:
        """Take a frame in; False if it was late, a duplicate or beyond the capacity."""
        counters = self.counters
        counters.received += 1
        if frame.sequence < self._next:
            self._count_past(frame.sequence)
            return False
        if frame.sequence in self._held:
            counters.duplicates += 1
            return False
        if frame.sequence >= self._next + self._capacity:
            counters.overflowed += 1
            return False
        self._held[frame.sequence] = frame
        self._newest = max(self._newest, frame.sequence)
        return True

    def finish(self, end: int) -> None:
        """No frame from `end` on will ever exist: what is held may play out at once.

        Of an end further off than the capacity, no more than that is concealed.
        """
        self._end = min(end, self._next + self.depth + self._capacity)

    def pull(self) -> Outcome:
        """What to play for the next 20 ms."""
        if self._end is not None and self._next >= self._end:
            return Ended()
        if self._filling and not self._filled():
            return Waiting()
        self._filling = False
        frame = self._held.pop(self._next, None)
        if frame is None and not self._held and self._end is None:
            self._filling = True
            self.counters.underruns += 1
            return Waiting()
        self._next += 1
        if frame is None:
            self.counters.concealed += 1
            self._concealed.append(self._next - 1)
            return Concealed(self._next - 1)
        self.counters.played += 1
        return Played(frame)

    def _count_past(self, sequence: int) -> None:
        if sequence in self._concealed:
            self._concealed.remove(sequence)
            self.counters.late += 1
        else:
            self.counters.duplicates += 1

    def _filled(self) -> bool:
        return self._end is not None or self.depth >= self._target
