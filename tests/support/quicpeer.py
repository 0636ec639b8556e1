"""aioquic's connection as an endpoint of `netem.drivers.memory`."""

from __future__ import annotations

from collections.abc import Callable

from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import QuicEvent

__all__ = ["Address", "QuicPeer"]

Address = tuple[str, int]


class QuicPeer:
    """Keeps the events in order; `sent` counts datagrams, lost or not."""

    def __init__(self, quic: QuicConnection) -> None:
        self.quic = quic
        self.events: list[QuicEvent] = []
        self.on_event: Callable[[QuicEvent], None] | None = None
        self.sent = 0

    def receive(self, data: bytes, source: Address, now: float) -> None:
        self.quic.receive_datagram(data, source, now)
        self._pump()

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, Address]]:
        datagrams = self.quic.datagrams_to_send(now)
        self.sent += len(datagrams)
        return [(data, (address[0], address[1])) for data, address in datagrams]

    def next_timer(self) -> float | None:
        return self.quic.get_timer()

    def handle_timer(self, now: float) -> None:
        self.quic.handle_timer(now)
        self._pump()

    def _pump(self) -> None:
        while (event := self.quic.next_event()) is not None:
            self.events.append(event)
            if self.on_event is not None:
                self.on_event(event)
