"""Two sans-I/O QUIC endpoints in virtual time over a link with delay and seeded loss."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aioquic.h3.connection import H3_ALPN
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent

from tenuto.quic import Connection, ReceiveWindow
from tenuto.tls import DevPair

__all__ = ["Endpoint", "VirtualPair"]

Address = tuple[str, int]
CLIENT: Address = ("192.0.2.1", 40001)
SERVER: Address = ("192.0.2.2", 4433)


@dataclass
class Endpoint:
    """One end: feed it by the pair; its events are kept in order."""

    quic: Connection
    address: Address
    events: list[QuicEvent] = field(default_factory=list)
    on_event: Callable[[QuicEvent], None] | None = None
    generation: int = 0

    def pump(self) -> None:
        while (event := self.quic.next_event()) is not None:
            self.events.append(event)
            if self.on_event is not None:
                self.on_event(event)


class VirtualPair:
    """A client and a server whose handshake is done; `run(seconds)` moves time."""

    def __init__(
        self,
        dev_pair: DevPair,
        *,
        delay: float = 0.030,
        seed: int = 1,
        window: ReceiveWindow | None = None,
        server_datagrams: int | None = 65536,
        client_datagrams: int | None = 65536,
    ) -> None:
        self.now = 1000.0
        self.delay = delay
        self.loss = 0.0
        self.sent = {"client": 0, "server": 0}
        self._random = random.Random(seed)
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        window = window or ReceiveWindow()
        client = QuicConfiguration(
            is_client=True,
            alpn_protocols=H3_ALPN,
            server_name="localhost",
            cafile=str(dev_pair.ca.chain_path),
            max_datagram_frame_size=client_datagrams,
        )
        server = QuicConfiguration(
            is_client=False, alpn_protocols=H3_ALPN, max_datagram_frame_size=server_datagrams
        )
        server.load_cert_chain(dev_pair.current.chain_path, dev_pair.current.key_path)
        one = Connection(configuration=window.apply(client), window=window)
        two = Connection(
            configuration=window.apply(server),
            window=window,
            original_destination_connection_id=one.original_destination_connection_id,
        )
        self.client = Endpoint(one, CLIENT)
        self.server = Endpoint(two, SERVER)
        one.connect(SERVER, now=self.now)
        self.transmit(self.client)
        self.run(1.0)
        assert one.established
        assert two.established

    def at(self, time: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (time, next(self._order), call))

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self._queue and self._queue[0][0] <= until:
            time, _, call = heapq.heappop(self._queue)
            self.now = max(self.now, time)
            call()
        self.now = until

    def every(self, period: float, call: Callable[[], None], *, until: float) -> None:
        """Repeat `call` from one period on until `until` seconds from now."""
        end = self.now + until

        def again() -> None:
            call()
            if self.now + period <= end:
                self.at(self.now + period, again)

        self.at(self.now + period, again)

    def transmit(self, end: Endpoint) -> None:
        other = self.server if end is self.client else self.client
        for data, _ in end.quic.datagrams_to_send(self.now):
            self.sent["client" if end is self.client else "server"] += 1
            if self._random.random() >= self.loss:
                self.deliver(other, data, end.address)
        self._arm(end)

    def deliver(self, end: Endpoint, data: bytes, source: Address) -> None:
        """After the delay, this datagram arrives at `end` from `source`."""

        def arrive() -> None:
            end.quic.receive_datagram(data, source, self.now)
            end.pump()
            self.transmit(end)

        self.at(self.now + self.delay, arrive)

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Nothing passes in either direction."""
        before, self.loss = self.loss, 1.0
        yield
        self.loss = before

    def _arm(self, end: Endpoint) -> None:
        end.generation += 1
        due = end.quic.get_timer()
        if due is None:
            return
        generation = end.generation

        def fire() -> None:
            if generation == end.generation:
                end.quic.handle_timer(self.now)
                end.pump()
                self.transmit(end)

        # Exactly on the loss timer, rounding can fire it again and again in no time.
        self.at(max(due, self.now) + 1e-6, fire)
