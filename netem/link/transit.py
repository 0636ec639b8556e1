"""Packets under way, within a bound, until they are due."""

from collections import deque
from heapq import heappop, heappush
from typing import Final

from netem.link.packet import Packet

__all__ = ["MAX_BYTES", "MAX_PACKETS", "Arrival", "Transit"]

MAX_PACKETS: Final = 100_000
MAX_BYTES: Final = 64 * 1024 * 1024
"""Bounds of what is under way in one direction; what comes on top is counted and lost."""

Arrival = tuple[float, Packet]
"""When it is due, and what."""


class Transit:
    """`overtaking`: the moments at which packets are due may come in any order.

    Without it they never fall, and a plain queue does: it takes half the time of a heap.
    """

    def __init__(self, *, overtaking: bool) -> None:
        self._heap: list[tuple[float, int, Packet]] | None = [] if overtaking else None
        self._line: deque[Arrival] = deque()
        self._added = 0
        self.packets = 0
        self.bytes = 0

    def add(self, due: float, packet: Packet) -> bool:
        """Whether there was room."""
        total = self.bytes + packet.size
        if self.packets >= MAX_PACKETS or total > MAX_BYTES:
            return False
        self.packets += 1
        self.bytes = total
        if self._heap is None:
            self._line.append((due, packet))
        else:
            # The count keeps those due at one moment in their order.
            self._added += 1
            heappush(self._heap, (due, self._added, packet))
        return True

    def pop_due(self, now: float) -> list[Arrival]:
        due: list[Arrival] = []
        if self._heap is not None:
            while self._heap and self._heap[0][0] <= now:
                moment, _, packet = heappop(self._heap)
                due.append((moment, packet))
        else:
            line = self._line
            while line and line[0][0] <= now:
                due.append(line.popleft())
        if due:
            self.packets -= len(due)
            self.bytes -= sum([packet.size for _, packet in due])
        return due

    def next_deadline(self) -> float | None:
        waiting = self._line if self._heap is None else self._heap
        return waiting[0][0] if waiting else None
