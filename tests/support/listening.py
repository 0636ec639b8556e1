"""A listener that only receives, as the client's watchdog would have it, in virtual time."""

from __future__ import annotations

from itertools import pairwise

from aioquic.quic.events import QuicEvent, StreamDataReceived

from tests.support.virtual import VirtualPair

__all__ = ["Listening"]

FRAME = 653
"""Bytes of a frame of 16 kHz mono in its record."""

PERIOD = 0.020


class Listening:
    """The server writes a frame each 20 ms, within bounds; the client pings.

    Once a second, and each 100 ms as long as nothing has come for 100 ms.
    """

    def __init__(self, pair: VirtualPair, *, seconds: float, held: int = 64 * 1024) -> None:
        self.made: list[float] = []
        self.heard: list[float] = []
        """When each frame had come whole, in order."""
        self.pings = 0
        self._pair = pair
        self._held = held
        self._bytes = 0
        self._came_at = self._pinged_at = self._beat_at = pair.now
        pair.client.on_event = self._on_event
        pair.client.quic.send_stream_data(0, b"GO")
        pair.transmit(pair.client)
        pair.run(0.5)
        pair.every(PERIOD, self._frame, until=seconds)
        pair.every(PERIOD, self._watch, until=seconds)

    def gap(self, *, since: float = 0.0) -> float:
        """The longest time between two frames' arrivals after `since`."""
        times = [time for time in self.heard if time >= since]
        return max(b - a for a, b in pairwise(times))

    def alive_after(self, time: float) -> float:
        """Seconds from then until a frame comes."""
        return min(heard for heard in self.heard if heard > time) - time

    def caught_up_after(self, time: float) -> float:
        """Seconds from then until the first frame comes that was made after it."""
        number = next(n for n, made in enumerate(self.made) if made > time)
        return self.heard[number] - time

    def _frame(self) -> None:
        # One that cannot be taken is not made: what a live source would have to drop.
        if self._pair.server.quic.held(0) < self._held:
            self.made.append(self._pair.now)
            self._pair.server.quic.send_stream_data(0, bytes(FRAME))
            self._pair.transmit(self._pair.server)

    def _on_event(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived):
            self._bytes += len(event.data)
            self._came_at = self._pair.now
            whole = self._bytes // FRAME - len(self.heard)
            self.heard += [self._pair.now] * whole

    def _watch(self) -> None:
        now = self._pair.now
        silent = now - self._came_at >= 0.1 and now - self._pinged_at >= 0.1
        if silent or now - self._beat_at >= 1.0:
            self._beat_at = now if not silent else self._beat_at
            self._pinged_at = now
            self.pings += 1
            quic = self._pair.client.quic
            quic.probe(padded=quic.unheard(now) >= 0.1)
            self._pair.transmit(self._pair.client)
