"""The way to a bottleneck, on which packets overtake: they reach it in another order."""

from heapq import heappop, heappush

from netem.link.packet import Packet
from netem.link.transit import MAX_BYTES, MAX_PACKETS

__all__ = ["Approach"]

_Coming = tuple[float, int, float, Packet]


class Approach:
    """Within the same bounds as what is under way behind the bottleneck."""

    def __init__(self) -> None:
        self._heap: list[_Coming] = []
        self._added = 0
        self._bytes = 0
        self.delay_total = 0.0
        """Seconds from offer to arrival, of all that are still coming."""

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, packet: Packet, offered: float, arrives: float) -> bool:
        """Whether there was room."""
        total = self._bytes + packet.size
        if len(self._heap) >= MAX_PACKETS or total > MAX_BYTES:
            return False
        self._bytes = total
        self._added += 1
        self.delay_total += arrives - offered
        # The count keeps those that arrive at one moment in their order.
        heappush(self._heap, (arrives, self._added, offered, packet))
        return True

    def pop_arrived(self, now: float) -> list[tuple[Packet, float, float]]:
        """Each with the moments at which it was offered and at which it arrives."""
        arrived = []
        while self._heap and self._heap[0][0] <= now:
            arrives, _, offered, packet = heappop(self._heap)
            self._bytes -= packet.size
            self.delay_total -= arrives - offered
            arrived.append((packet, offered, arrives))
        return arrived

    def next_arrival(self) -> float | None:
        return self._heap[0][0] if self._heap else None
