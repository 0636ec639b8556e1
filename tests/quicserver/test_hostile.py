"""Packets and handshakes that nobody should send, while a listener plays."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from pathlib import Path

import pytest
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import HandshakeCompleted, StreamDataReceived

from bench.listening import Heard, listen
from bench.rude import NeverReads
from quicserver.limits import DoorLimits
from quicserver.peer import Peer
from tenuto.errors import ErrorCode
from tenuto.session import State
from tenuto.telemetry.events import ConnectionRefused, Event, PeerFaulted
from tests.conftest import StartServer
from tests.support.fetch import fetch_soon
from tests.support.relay import delaying_relay

PLAY = {"tone": "440", "seconds": "60", "lead": "0.2"}


def first_flight() -> bytes:
    """The Initial of a client that will never be heard of again."""
    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=H3_ALPN, server_name="localhost"
    )
    client = QuicConnection(configuration=configuration)
    client.connect(("127.0.0.1", 1), now=0.0)
    return client.datagrams_to_send(0.0)[0][0]


async def fire(port: int, datagrams: list[bytes], *, pause: int = 50) -> None:
    """Send them from one port, yielding to the server now and then."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gun:
        for number, data in enumerate(datagrams):
            gun.sendto(data, ("127.0.0.1", port))
            if number % pause == 0:
                await asyncio.sleep(0.001)
    await asyncio.sleep(0.05)


def junk(seed: int = 7) -> list[bytes]:
    """Of every kind that field reports name, then at random."""
    rng = random.Random(seed)
    initial = first_flight()
    cases = [
        b"\x40",
        b"\x40" * 20,
        b"\x00",
        rng.randbytes(1200),
        b"\xc0" + b"\xba\xad\xf0\x0d" + initial[5:],  # a version nobody speaks
        b"\xc0\x00\x00\x00\x00" + initial[5:],  # a version negotiation packet
        initial[:1100],
        initial[:7],
        initial[:5] + b"\xff" + initial[6:],  # a connection ID longer than allowed
        b"\xf0" + initial[1:],  # a Retry
        b"\xd0" + initial[1:],  # 0-RTT of nobody
        initial[:60] + rng.randbytes(len(initial) - 60),
        b"",
    ]
    for _ in range(3000):
        size = rng.randrange(1, 1500)
        data = bytearray(rng.randbytes(size))
        if rng.random() < 0.5:
            data[:size] = initial[:size].ljust(size, b"\0")
            data[rng.randrange(size)] ^= 1 << rng.randrange(8)
        cases.append(bytes(data))
    return cases


@pytest.fixture
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Handshakes get half a second, or the parameter, so that a test does not take five."""
    import quicserver.app

    given = getattr(request, "param", 0.5)
    monkeypatch.setattr(
        quicserver.app, "DoorLimits", lambda **kw: DoorLimits(**{**kw, "handshake": given})
    )


async def test_junk_disturbs_no_listener(start_server: StartServer, ca_file: Path) -> None:
    server = await start_server()
    playing = asyncio.create_task(listen(server.port, ca_file, PLAY, transport="quic", seconds=4.0))
    await asyncio.sleep(0.7)
    await fire(server.port, junk())
    heard = await playing
    assert len(heard.sequences) > 150
    assert heard.complete
    assert server._quic is not None
    assert server._quic.tally.datagrams_dropped > 1000
    assert server._quic.tally.faults == 0
    assert heard.longest_gap < 0.3


# All must be there before the first one's time is over, however busy the machine.
@pytest.mark.parametrize("few", [2.0], indirect=True)
async def test_half_open_handshakes_are_capped_and_end(
    start_server: StartServer, ca_file: Path, events: list[Event], few: None
) -> None:
    server = await start_server(max_half_open=100, max_half_open_per_address=40)
    quic = server._quic
    assert quic is not None
    await fire(server.port, [first_flight() for _ in range(150)], pause=5)
    assert quic.half_open == 40
    assert quic.tally.refused == 110
    told = [event for event in events if isinstance(event, ConnectionRefused)]
    assert len(told) == 1
    assert told[0].reason == "40 handshakes are unfinished from one address"
    # TCP is not concerned, and after the deadline there is room again.
    assert (await fetch_soon("tcp", server.port, "/healthz", ca=ca_file)).status == 200
    async with asyncio.timeout(10):
        while quic.connections:  # nobody tells
            await asyncio.sleep(0.05)
    assert quic.half_open == 0
    assert quic.tally.handshakes_timed_out == 40
    assert not quic._peers
    assert (await fetch_soon("quic", server.port, "/healthz", ca=ca_file)).status == 200


async def test_an_unfinished_handshake_gets_no_more_than_three_times_its_bytes(
    start_server: StartServer, few: None
) -> None:
    server = await start_server()
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setblocking(False)
        client.connect(("127.0.0.1", server.port))
        initial = first_flight()
        client.send(initial)
        received = 0
        end = loop.time() + 1.0
        while loop.time() < end:
            try:
                received += len(client.recv(2000))
            except BlockingIOError:
                await asyncio.sleep(0.01)
    assert 0 < received <= 3 * len(initial)


async def test_initials_that_nobody_can_decrypt_end_quietly(
    start_server: StartServer, few: None
) -> None:
    server = await start_server()
    quic = server._quic
    assert quic is not None
    rng = random.Random(3)
    initial = first_flight()
    await fire(server.port, [initial[:40] + rng.randbytes(1160) for _ in range(20)])
    assert quic.connections > 0
    await asyncio.sleep(0.8)
    assert quic.connections == 0
    assert quic.tally.faults == 0


async def test_forged_addresses_do_not_displace_the_true_one(
    start_server: StartServer, ca_file: Path
) -> None:
    """A peer learns where to answer from each datagram, and forgets the oldest."""
    server = await start_server()
    client = RawClient(server.port, ca_file)
    await client.connect()
    assert server._quic is not None
    (peer,) = server._quic._ids
    stray = b"\x40" + peer.connection.host_cid + bytes(30)
    await fire(server.port, [stray])
    for _ in range(30):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.sendto(stray, ("127.0.0.1", server.port))
    await asyncio.sleep(0.1)
    assert len(peer._routes) <= 16
    http = H3Connection(client.quic)
    request = [
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":authority", b"localhost"),
        (b":path", b"/healthz"),
    ]
    http.send_headers(0, request, end_stream=True)
    await client.run(0.5)
    client.close()
    assert b'"status":"ok"' in client.data[0]


async def test_the_total_of_connections_is_capped(start_server: StartServer, ca_file: Path) -> None:
    server = await start_server(max_connections=3)
    await fire(server.port, [first_flight() for _ in range(10)])
    assert server._quic is not None
    assert server._quic.connections == 3
    assert server._quic.tally.refused == 7


async def test_initials_with_short_connection_ids_open_nothing(start_server: StartServer) -> None:
    server = await start_server()
    assert server._quic is not None
    initial = first_flight()
    short = initial[:5] + b"\x04" + initial[6:10] + initial[14:] + bytes(4)
    await fire(server.port, [short])
    assert server._quic.connections == 0


class RawClient:
    """A client on aioquic alone, to send what libraries do not."""

    def __init__(self, port: int, ca: Path) -> None:
        configuration = QuicConfiguration(
            is_client=True, alpn_protocols=H3_ALPN, server_name="localhost", cafile=str(ca)
        )
        self.quic = QuicConnection(configuration=configuration)
        self.address = ("127.0.0.1", port)
        self.data: dict[int, bytes] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    async def connect(self) -> None:
        self.quic.connect(self.address, now=time.monotonic())
        await self.run(2.0, until=HandshakeCompleted)

    async def run(self, seconds: float, *, until: type | None = None) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for data, _ in self.quic.datagrams_to_send(time.monotonic()):
                self._socket.sendto(data, self.address)
            await asyncio.sleep(0.002)
            while True:
                try:
                    data = self._socket.recv(2000)
                except BlockingIOError:
                    break
                self.quic.receive_datagram(data, self.address, time.monotonic())
            timer = self.quic.get_timer()
            if timer is not None and timer <= time.monotonic():
                self.quic.handle_timer(time.monotonic())
            while (event := self.quic.next_event()) is not None:
                if isinstance(event, StreamDataReceived):
                    self.data[event.stream_id] = self.data.get(event.stream_id, b"") + event.data
                if until is not None and isinstance(event, until):
                    return

    def close(self) -> None:
        self._socket.close()


def broken_streams() -> list[tuple[str, list[tuple[int, bytes, bool]]]]:
    """Stream data that breaks HTTP/3, by name: (stream, bytes, FIN)."""
    settings = b"\x00\x04\x00"
    return [
        ("settings twice", [(2, settings + b"\x04\x00", False)]),
        ("control stream without settings", [(2, b"\x00\x01\x00", False)]),
        ("control stream closed", [(2, settings, True)]),
        ("data before headers", [(2, settings, False), (0, b"\x00\x01x", True)]),
        ("reserved frame", [(2, settings, False), (0, b"\x02\x00", True)]),
        ("unknown frame, then nothing", [(2, settings, False), (0, b"\x21\x05abcde", True)]),
        (
            "garbage header block",
            [(2, settings, False), (0, b"\x01\x05\xff\xff\xff\xff\xff", True)],
        ),
        ("truncated frame", [(2, settings, False), (0, b"\x01\x40\xff", True)]),
        ("empty request", [(2, settings, False), (0, b"", True)]),
        ("push stream", [(2, settings, False), (6, b"\x01\x00", False)]),
        ("two encoder streams", [(2, settings, False), (6, b"\x02", False), (10, b"\x02", False)]),
        ("encoder rubbish", [(2, settings, False), (6, b"\x02" + b"\xff" * 200, False)]),
        ("unknown stream type", [(2, settings, False), (6, b"\x40\x33" + b"x" * 500, False)]),
    ]


async def test_broken_http3_costs_its_own_connection_only(
    start_server: StartServer, ca_file: Path, events: list[Event]
) -> None:
    server = await start_server()
    playing = asyncio.create_task(listen(server.port, ca_file, PLAY, transport="quic", seconds=5.0))
    await asyncio.sleep(0.7)
    for _name, writes in broken_streams():
        client = RawClient(server.port, ca_file)
        await client.connect()
        for stream_id, data, fin in writes:
            client.quic.send_stream_data(stream_id, data, end_stream=fin)
        await client.run(0.1)
        # And on top: stop and reset whatever there is, in every state.
        for stream_id in (0, 4):
            for misuse in (client.quic.stop_stream, client.quic.reset_stream):
                try:
                    misuse(stream_id, 0x10C)
                except ValueError:
                    continue  # Not a stream of this connection's.
        await client.run(0.05)
        client.close()
    heard: Heard = await playing
    assert heard.complete
    assert len(heard.sequences) > 150
    assert not [event for event in events if isinstance(event, PeerFaulted)]
    assert (await fetch_soon("quic", server.port, "/healthz", ca=ca_file)).status == 200


async def test_a_fault_in_one_event_spares_the_rest_of_the_burst(
    start_server: StartServer,
    ca_file: Path,
    events: list[Event],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bug of ours in one event: that peer is closed, others are served in the same burst."""
    server = await start_server()
    handle = Peer._handle
    tripped = []

    def trip(self: Peer, event: object) -> None:
        if isinstance(event, StreamDataReceived) and b"tripwire" in event.data:
            tripped.append(self)
            raise RuntimeError("a bug of ours")
        handle(self, event)  # type: ignore[arg-type]

    monkeypatch.setattr(Peer, "_handle", trip)
    victim = RawClient(server.port, ca_file)
    await victim.connect()
    other = asyncio.create_task(listen(server.port, ca_file, PLAY, transport="quic", seconds=2.0))
    await asyncio.sleep(0.5)
    victim.quic.send_stream_data(2, b"\x21tripwire")
    victim.quic.send_stream_data(6, b"\x21harmless")
    await victim.run(0.3)
    assert tripped
    faults = [event for event in events if isinstance(event, PeerFaulted)]
    assert len(faults) == 1
    assert faults[0].fault == "RuntimeError('a bug of ours')"
    assert "test_hostile.py" in faults[0].place
    assert victim.quic._close_event is not None
    victim.close()
    heard = await other
    assert heard.complete
    assert len(heard.sequences) > 50


async def test_icmp_errors_do_not_deafen_the_socket(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    # Clients that vanish at once: every answer to them draws "port unreachable".
    for _ in range(50):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone:
            gone.sendto(first_flight(), ("127.0.0.1", server.port))
    await asyncio.sleep(0.2)
    answer = await fetch_soon("quic", server.port, "/healthz", ca=ca_file)
    assert answer.status == 200


async def test_headers_that_unpack_to_too_much_are_answered_431(
    start_server: StartServer, ca_file: Path
) -> None:
    """Two bytes of QPACK name a static entry of over a hundred (RFC 9204 appendix A)."""
    server = await start_server()
    client = RawClient(server.port, ca_file)
    await client.connect()
    http = H3Connection(client.quic)
    policy = (b"content-security-policy", b"script-src 'none'; object-src 'none'; base-uri 'none'")
    request = [
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":authority", b"localhost"),
        (b":path", b"/healthz"),
    ]
    http.send_headers(0, [*request, *[policy] * 1000], end_stream=True)
    http.send_headers(4, request, end_stream=True)
    await client.run(0.5)
    client.close()
    assert b"431" in client.data[0] or client.data[0][0] == 1
    # The other request of the same connection is answered as ever.
    assert b'"status":"ok"' in client.data[4]
    assert b'"status":"ok"' not in client.data[0]


async def test_a_quic_listener_that_stands_still_is_closed_resumable(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import quicserver.app

    monkeypatch.setattr(
        quicserver.app,
        "DoorLimits",
        lambda **kw: DoorLimits(**{**kw, "stalled": 0.5, "farewell": 0.2}),
    )
    server = await start_server()
    path = "/v1/speak?source=counting&frames=100000&rate=48000&channels=2&lead=max"
    client = NeverReads(server.port, ca_file, path)
    await client.run(2.5)
    assert client.reset_code == ErrorCode.TOO_SLOW.h3_error
    assert server.host.listeners == 0
    assert server._quic is not None
    assert server._quic.held == 0
    (session,) = [entry.session for entry in server.host._entries.values()]
    assert session.state is State.IDLE


async def test_steady_acknowledgements_are_progress_whatever_is_held(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a steady round trip one frame is acknowledged for each one sent: held stands still."""
    import quicserver.app

    monkeypatch.setattr(
        quicserver.app, "DoorLimits", lambda **kw: DoorLimits(**{**kw, "stalled": 0.3})
    )
    server = await start_server()
    for delay in (0.010, 0.030, 0.055):
        port, relay = await delaying_relay(server.port, delay)
        heard = await listen(port, ca_file, PLAY, transport="quic", seconds=2.0)
        relay.close()
        assert heard.complete
        assert len(heard.sequences) > 60, delay


async def test_requests_that_are_only_reset_give_their_credit_back(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    client = RawClient(server.port, ca_file)
    await client.connect()
    http = H3Connection(client.quic)
    request = [
        (b":method", b"POST"),
        (b":scheme", b"https"),
        (b":authority", b"localhost"),
        (b":path", b"/v1/speak"),
    ]
    for first in range(0, 240, 20):
        streams = [4 * number for number in range(first, first + 20)]
        for stream_id in streams:
            http.send_headers(stream_id, request)
        if first % 40:
            await client.run(0.1)  # Else the reset comes with the headers.
        else:
            for data, _ in client.quic.datagrams_to_send(time.monotonic()):
                client._socket.sendto(data, client.address)
        for stream_id in streams:
            client.quic.reset_stream(stream_id, 0x10C)
        await client.run(0.1)
    assert server._quic is not None
    assert [peer.requests for peer in server._quic._ids] == [0]
    request[0] = (b":method", b"GET")
    request[3] = (b":path", b"/healthz")
    http.send_headers(960, request, end_stream=True)
    await client.run(1.0)
    client.close()
    assert b'"status":"ok"' in client.data.get(960, b"")
