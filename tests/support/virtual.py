"""Two QUIC connections in virtual time, over a path of the loss lab."""

from __future__ import annotations

from collections.abc import Callable

from aioquic.h3.connection import H3_ALPN
from aioquic.quic.configuration import QuicConfiguration

from netem.drivers.memory import MemoryPath
from netem.profile import Conditions, Profile, Way
from tenuto.quic import Connection, ReceiveWindow
from tenuto.tls import DevPair
from tests.support.quicpeer import Address, QuicPeer

__all__ = ["CLIENT", "SERVER", "Endpoint", "VirtualPair", "both_ways"]

CLIENT: Address = ("192.0.2.1", 40001)
SERVER: Address = ("192.0.2.2", 4433)


def both_ways(conditions: Conditions) -> Profile:
    return Profile(name="both-ways", up=conditions, down=conditions)


class Endpoint(QuicPeer):
    """One end, with the product's own connection."""

    quic: Connection

    def __init__(self, quic: Connection, way: Way) -> None:
        super().__init__(quic)
        self.way = way


class VirtualPair:
    """A client and a server whose handshake is done; `run(seconds)` moves time.

    The time of the profile begins with the handshake, which has the first second, or `handshake`,
    to itself.
    """

    def __init__(
        self,
        dev_pair: DevPair,
        *,
        profile: Profile | None = None,
        seed: int = 1,
        window: ReceiveWindow | None = None,
        handshake: float = 1.0,
        server_datagrams: int | None = 65536,
        client_datagrams: int | None = 65536,
    ) -> None:
        profile = profile or both_ways(Conditions(delay=0.030))
        self.delay = profile.up.delay
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
        self.client = Endpoint(one, Way.UP)
        self.server = Endpoint(two, Way.DOWN)
        self.path = MemoryPath(
            profile,
            seed,
            self.client,
            self.server,
            started=1000.0,
            client_address=CLIENT,
            server_address=SERVER,
        )
        one.connect(SERVER, now=self.now)
        self.transmit(self.client)
        self.run(handshake)
        assert one.established, f"seed {seed}"
        assert two.established, f"seed {seed}"

    @property
    def now(self) -> float:
        return self.path.now

    def run(self, seconds: float) -> None:
        self.path.run_until(self.now + seconds)

    def every(self, period: float, call: Callable[[], None], *, until: float) -> None:
        """Repeat `call` from one period on until `until` seconds from now."""
        end = self.now + until

        def again() -> None:
            call()
            if self.now + period <= end:
                self.path.at(self.now + period, again)

        self.path.at(self.now + period, again)

    def transmit(self, end: Endpoint) -> None:
        self.path.transmit(end.way)

    def deliver(self, end: Endpoint, data: bytes, source: Address) -> None:
        """After the delay, this datagram arrives at `end` from `source`."""

        def arrive() -> None:
            end.receive(data, source, self.now)
            self.transmit(end)

        self.path.at(self.now + self.delay, arrive)
