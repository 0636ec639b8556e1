"""UDP sockets, connection IDs and the caps on who may open how much."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aioquic.buffer import Buffer  # type: ignore[attr-defined]  # its public name
from aioquic.h3.connection import H3_ALPN
from aioquic.h3.connection import ErrorCode as H3Error
from aioquic.quic.configuration import SMALLEST_MAX_DATAGRAM_SIZE, QuicConfiguration
from aioquic.quic.packet import (
    QuicErrorCode,
    QuicHeader,
    QuicPacketType,
    QuicProtocolVersion,
    encode_quic_version_negotiation,
    pull_quic_header,
)
from starlette.types import ASGIApp

from quicserver.afterlife import Afterlife
from quicserver.invariants import LONG_HEADER, read_long_header
from quicserver.kerneldrops import kernel_drops
from quicserver.knocks import Knock, Knocks
from quicserver.limits import DoorLimits
from quicserver.peer import Address, Peer
from tenuto.host import Admission
from tenuto.quic import Connection, ReceiveWindow, ResetKey
from tenuto.telemetry.events import Event
from tenuto.telemetry.faults import describe_fault

__all__ = ["QuicListener", "QuicTally", "bind_udp"]

_BURST = 256
"""Datagrams read before the loop gets a turn."""

_LEAST_INITIAL_CID = 8
"""RFC 9000 section 7.2: a client's first Destination Connection ID has 8 bytes or more."""


@dataclass(slots=True)
class QuicTally:
    """Counters of the QUIC door since its start."""

    datagrams_received: int = 0
    datagrams_sent: int = 0
    datagrams_dropped: int = 0
    """Malformed, or for a connection unknown here."""
    send_failures: int = 0
    connections: int = 0
    refused: int = 0
    handshakes_timed_out: int = 0
    migrations: int = 0
    """Clients heard from another address or port than before: a NAT's doing or their own."""
    faults: int = 0


class QuicListener:
    """Routes datagrams to peers: drains a socket, then lets each touched peer send once."""

    def __init__(
        self,
        app: ASGIApp,
        configuration: QuicConfiguration,
        limits: DoorLimits,
        *,
        reset_key: bytes,
        on_event: Callable[[Event], None],
    ) -> None:
        self.tally = QuicTally()
        self.leaving = False
        self._reset_key = ResetKey(reset_key)
        self._afterlife = Afterlife(self._reset_key, limits, self.send)
        self._app = app
        self._limits = limits
        self._window = ReceiveWindow()
        self._configuration = self._window.apply(configuration)
        self._configuration.alpn_protocols = H3_ALPN
        self._configuration.idle_timeout = limits.idle_timeout
        self._on_event = on_event
        self._peers: dict[bytes, Peer] = {}
        self._ids: dict[Peer, set[bytes]] = {}
        self._half_open: dict[Peer, asyncio.TimerHandle] = {}
        self._connected = Admission(
            "quic",
            "connections are open",
            most=limits.max_connections,
            most_per_address=limits.max_connections,
            on_event=on_event,
        )
        self._shaking_hands = Admission(
            "quic",
            "handshakes are unfinished",
            most=limits.max_half_open,
            most_per_address=limits.max_half_open_per_address,
            on_event=on_event,
        )
        self._accepting = True
        self.knocks = Knocks()
        """What came to open a connection since we accept none."""
        self._dirty: dict[Peer, None] = {}
        self._flushing = False
        self._sockets: list[socket.socket] = []
        self._loop = asyncio.get_running_loop()
        self._keeper: asyncio.TimerHandle | None = None

    @property
    def connections(self) -> int:
        return len(self._ids)

    @property
    def half_open(self) -> int:
        """Connections whose handshake is not complete."""
        return len(self._half_open)

    @property
    def held(self) -> int:
        """Bytes written for all clients and not yet acknowledged."""
        return sum(peer.held for peer in self._ids)

    @property
    def kernel_drops(self) -> int:
        """Datagrams lost because the sockets were not read in time."""
        return kernel_drops(self._sockets)

    @property
    def afterlife(self) -> dict[str, int]:
        """Counters: what was sent on behalf of connections that are no more."""
        return {
            "closes_repeated": self._afterlife.closes_repeated,
            "resets_sent": self._afterlife.resets_sent,
        }

    @property
    def requests(self) -> int:
        """Requests whose answer is not written yet."""
        return sum(peer.requests for peer in self._ids)

    def listen(self, sockets: list[socket.socket]) -> None:
        """Serve these bound, non-blocking sockets; the listener closes them."""
        self._sockets = sockets
        for each in sockets:
            self._loop.add_reader(each.fileno(), self._readable, each)
        self._keeper = self._loop.call_later(1.0, self._keep_alive)

    def open_to(self, knocks: Sequence[Knock]) -> None:
        """What came to a predecessor that accepted none any more comes to us."""
        now = self._loop.time()
        for each in knocks:
            for local in self._sockets:
                if local.getsockname()[0] == each.host:
                    self._received(each.data, each.sender, local, now)
        self._flush()

    def stop_accepting(self) -> None:
        self._accepting = False

    def goaway(self) -> None:
        """GOAWAY to everyone, those included whose handshake is not complete yet.

        Requests that come later are reset with H3_REQUEST_REJECTED; those that run go on.
        """
        self.leaving = True
        for peer in list(self._ids):
            peer.goaway()

    def close(self) -> None:
        """CONNECTION_CLOSE to everyone, and free the port."""
        for peer in list(self._ids):
            peer.close(H3Error.H3_NO_ERROR, "server stopped")
        if self._keeper is not None:
            self._keeper.cancel()
        for each in self._sockets:
            self._loop.remove_reader(each.fileno())
            each.close()
        self._sockets = []

    # For peers

    def route(self, connection_id: bytes, peer: Peer) -> None:
        if peer in self._ids:
            self._peers[connection_id] = peer
            self._ids[peer].add(connection_id)

    def unroute(self, connection_id: bytes) -> None:
        peer = self._peers.pop(connection_id, None)
        if peer is not None:
            self._ids[peer].discard(connection_id)

    def flush_soon(self, peer: Peer) -> None:
        self._dirty[peer] = None
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def send(self, socket: socket.socket, data: bytes, address: Address) -> None:
        try:
            socket.sendto(data, address)
            self.tally.datagrams_sent += 1
        except OSError:
            # A full buffer, no route, an MTU too small: all are loss to QUIC, which repairs.
            self.tally.send_failures += 1

    def established(self, peer: Peer) -> None:
        timer = self._half_open.pop(peer, None)
        if timer is not None:
            timer.cancel()
            self._shaking_hands.leave(peer.address[0])

    def closed(
        self, peer: Peer, datagrams: list[bytes], local: socket.socket, until: float
    ) -> None:
        ids = self._ids.get(peer, ())
        self._afterlife.remember(ids, datagrams, peer.address, local, until)

    def moved(self, peer: Peer) -> None:
        self.tally.migrations += 1

    def ended(self, peer: Peer) -> None:
        self.established(peer)
        if peer in self._ids:
            self._connected.leave(peer.address[0])
        for connection_id in self._ids.pop(peer, ()):
            self._peers.pop(connection_id, None)

    def faulted(self, fault: Exception) -> None:
        self.tally.faults += 1
        self._on_event(describe_fault("quic", fault))

    # Datagrams

    def _readable(self, local: socket.socket) -> None:
        now = self._loop.time()
        for _ in range(_BURST):
            try:
                data, address = local.recvfrom(65536)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                # An ICMP error of an earlier send; the socket itself is well.
                continue
            self._received(data, address, local, now)
        self._flush()

    def _received(self, data: bytes, address: Address, local: socket.socket, now: float) -> None:
        self.tally.datagrams_received += 1
        try:
            peer = self._find(data, address, local)
        except Exception as fault:  # noqa: BLE001  # a guard
            self.faulted(fault)
            peer = None
        if peer is None:
            self.tally.datagrams_dropped += 1
            return
        peer.receive(data, address, local, now)
        self._dirty[peer] = None

    def _flush(self) -> None:
        self._flushing = False
        now = self._loop.time()
        dirty, self._dirty = self._dirty, {}
        for peer in dirty:
            peer.flush(now)

    def _find(self, data: bytes, address: Address, local: socket.socket) -> Peer | None:
        # Nearly all packets have short headers: they are not looked at here.
        if data and data[0] & LONG_HEADER and self._negotiates_version(data, address, local):
            return None
        try:
            header = pull_quic_header(
                Buffer(data=data), host_cid_length=self._configuration.connection_id_length
            )
        except ValueError:
            return None
        peer = self._peers.get(header.destination_cid)
        if peer is not None:
            return peer
        now = self._loop.time()
        if self._afterlife.repeat(header.destination_cid, len(data), now):
            return None
        if header.version is None:
            length = self._configuration.connection_id_length
            self._afterlife.reset(data, length, address, local, now)
            return None
        if len(data) < SMALLEST_MAX_DATAGRAM_SIZE:
            return None
        if header.packet_type != QuicPacketType.INITIAL:
            return None
        if not self._accepting:
            self.knocks.keep(data, address, local, now)
            return None
        if not self._may_open(header, address):
            return None
        return self._open(header, address, local)

    def _negotiates_version(self, data: bytes, address: Address, local: socket.socket) -> bool:
        """Whether it is of a version not spoken here. Then no other bit of it means a thing to us,
        and it is answered if it is large enough to begin a connection (RFC 9000 section 5.2.2).
        """
        header = read_long_header(data)
        if header is None or header.version in self._configuration.supported_versions:
            return False
        negotiation = header.version == QuicProtocolVersion.NEGOTIATION
        if len(data) >= SMALLEST_MAX_DATAGRAM_SIZE and not negotiation:
            answer = encode_quic_version_negotiation(
                source_cid=header.destination_cid,
                destination_cid=header.source_cid,
                supported_versions=self._configuration.supported_versions,
            )
            self.send(local, answer, address)
        return True

    def _may_open(self, header: QuicHeader, address: Address) -> bool:
        """The caps. A refused client's next Initial, a PTO later, is looked at afresh."""
        if len(header.destination_cid) < _LEAST_INITIAL_CID:
            return False
        host = address[0]
        if self._connected.admit(host):
            if self._shaking_hands.admit(host):
                return True
            self._connected.leave(host)
        self.tally.refused += 1
        return False

    def _open(self, header: QuicHeader, address: Address, local: socket.socket) -> Peer:
        connection = Connection(
            configuration=self._configuration,
            window=self._window,
            original_destination_connection_id=header.destination_cid,
            reset_key=self._reset_key,
        )
        peer = Peer(self, connection, self._app, self._limits, address, local)
        self.tally.connections += 1
        self._ids[peer] = set()
        self.route(header.destination_cid, peer)
        self.route(connection.host_cid, peer)
        self._half_open[peer] = self._loop.call_later(
            self._limits.handshake, self._handshake_overdue, peer
        )
        return peer

    def _handshake_overdue(self, peer: Peer) -> None:
        self.tally.handshakes_timed_out += 1
        peer.close(QuicErrorCode.CONNECTION_REFUSED, "handshake took too long")

    def _keep_alive(self) -> None:
        self._keeper = self._loop.call_later(1.0, self._keep_alive)
        now = self._loop.time()
        self._afterlife.expire(now)
        for peer in list(self._ids):
            peer.keep_alive(now)


def bind_udp(host: str, port: int, buffer: int) -> socket.socket:
    """A non-blocking socket with buffers as large as the kernel grants; raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_DGRAM)
    try:
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            bound.setsockopt(socket.SOL_SOCKET, option, buffer)
        bound.setblocking(False)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound
