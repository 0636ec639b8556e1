"""What a connection holds, keeps alive, and does after an outage or on a new path."""

from __future__ import annotations

import statistics

import pytest
from aioquic.h3.connection import ErrorCode as H3Error
from aioquic.h3.events import HeadersReceived
from aioquic.quic.events import DatagramFrameReceived, StreamDataReceived

from netem.profile import Blackout, Conditions, RandomLoss
from tenuto.quic import Connection, Http3
from tenuto.quic.connection import KEEP_ALIVE
from tenuto.tls import DevPair
from tests.support.virtual import VirtualPair, both_ways

REQUEST = [
    (b":method", b"GET"),
    (b":scheme", b"https"),
    (b":authority", b"localhost"),
    (b":path", b"/"),
]


def bookkeeping(quic: Connection) -> int:
    """Packets that the loss recovery remembers."""
    return sum(len(space.sent_packets) for space in quic._loss.spaces)


@pytest.mark.parametrize("keep_alive", [True, False])
def test_a_connection_that_only_receives_forgets_its_acks_thanks_to_pings(
    dev_pair: DevPair, keep_alive: bool
) -> None:
    pair = VirtualPair(dev_pair)

    def tell() -> None:
        # No data, so that no window update of ours is ever acknowledged either.
        pair.client.quic.send_ping(0)
        pair.transmit(pair.client)

    def beat() -> None:
        if keep_alive and pair.server.quic.keep_alive(pair.now, expecting=False):
            pair.transmit(pair.server)

    pair.every(0.020, tell, until=120.0)
    pair.every(1.0, beat, until=120.0)
    pair.run(121.0)
    remembered = bookkeeping(pair.server.quic)
    # Without PINGs every ACK of two minutes is still there: the hole is real.
    assert remembered < 500 if keep_alive else remembered > 2000


def test_an_idle_connection_is_left_to_sleep(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    pair.run(2 * KEEP_ALIVE)
    before = pair.server.sent
    pings = 0
    for _ in range(6):
        pings += pair.server.quic.keep_alive(pair.now, expecting=False)
        pair.transmit(pair.server)
        pair.run(1.0)
    assert pings == 0
    assert pair.server.sent == before


def test_expected_audio_keeps_a_silent_connection_alive(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    for _ in range(120):
        if pair.server.quic.keep_alive(pair.now, expecting=True):
            pair.transmit(pair.server)
        pair.run(1.0)
    assert pair.server.quic._close_event is None
    assert pair.client.quic._close_event is None


def test_held_bytes_are_those_not_yet_acknowledged(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    pair.client.quic.send_stream_data(0, b"GET")
    pair.transmit(pair.client)
    pair.run(0.2)
    server = pair.server.quic
    assert server.held(0) == 0
    server.send_stream_data(0, bytes(3000))
    assert server.held(0) == 3000
    pair.transmit(pair.server)
    pair.run(pair.delay)
    assert server.held(0) == 3000
    pair.run(0.2)
    assert server.held(0) == 0


# DATAGRAM frames


def test_an_oversize_datagram_is_refused_and_blocks_nobody(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    server = pair.server.quic
    room = server.max_datagram_payload
    assert 1100 < room < 1200
    with pytest.raises(ValueError, match=f"takes {room}"):
        server.send_datagram(bytes(room + 1), pair.now)
    server.send_datagram(bytes(room), pair.now)
    server.send_datagram(b"small", pair.now)
    pair.transmit(pair.server)
    pair.run(0.1)
    arrived = [e.data for e in pair.client.events if isinstance(e, DatagramFrameReceived)]
    assert [len(data) for data in arrived] == [room, 5]


@pytest.mark.parametrize("limit", [None, 100])
def test_a_peers_datagram_limit_is_respected(dev_pair: DevPair, limit: int | None) -> None:
    pair = VirtualPair(dev_pair, client_datagrams=limit)
    assert pair.server.quic.max_datagram_payload == (0 if limit is None else limit - 30)
    with pytest.raises(ValueError, match="this peer takes"):
        pair.server.quic.send_datagram(bytes(100), pair.now)
    pair.run(1.0)
    assert pair.client.quic._close_event is None


def test_the_datagram_queue_drops_its_oldest_and_whatever_is_stale(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    server = pair.server.quic
    for number in range(200):
        server.send_datagram(number.to_bytes(2, "big"), pair.now)
    assert len(server.datagrams) == 64
    assert server.datagrams.dropped == 136
    pair.run(1.0)
    pair.transmit(pair.server)
    assert len(server.datagrams) == 0
    assert server.datagrams.dropped == 200
    pair.run(0.1)
    assert not any(isinstance(e, DatagramFrameReceived) for e in pair.client.events)


def test_a_datagram_without_its_time_is_a_mistake_of_ours(dev_pair: DevPair) -> None:
    with pytest.raises(TypeError, match="send_datagram"):
        VirtualPair(dev_pair).server.quic.send_datagram_frame(b"")


# Outages and new paths


def live_again_after(pair: VirtualPair, outage: float) -> float:
    """Seconds from the end of an outage to the first frame made after it."""
    server = pair.server.quic
    pair.client.quic.send_stream_data(0, b"GO")
    pair.transmit(pair.client)
    pair.run(1.0)
    made: list[tuple[int, float]] = []
    arrived: dict[int, float] = {}
    received = 0

    def frame() -> None:
        if server.held(0) > 64 * 1024:
            return  # As a sender with a bound does.
        made.append((640 * (len(made) + 1), pair.now))
        server.send_stream_data(0, bytes(640))
        pair.transmit(pair.server)

    def on_event(event: object) -> None:
        nonlocal received
        if isinstance(event, StreamDataReceived):
            received += len(event.data)
            for end, _ in made:
                if end <= received and end not in arrived:
                    arrived[end] = pair.now

    def ping() -> None:
        pair.client.quic.send_ping(0)
        pair.transmit(pair.client)

    pair.client.on_event = on_event
    pair.every(0.020, frame, until=20.0)
    pair.every(1.0, ping, until=20.0)
    pair.run(2.0 + outage)
    ended = pair.now
    ping()
    pair.run(6.0)
    return min(arrived[end] for end, time in made if time > ended and end in arrived) - ended


@pytest.mark.parametrize("outage", [1.0, 3.0, 6.0])
def test_audio_is_live_soon_after_an_outage(dev_pair: DevPair, outage: float) -> None:
    """Backed-off probes would wait for as long as the outage lasted."""
    # The handshake and the first request have a second each, the frames two before the outage.
    conditions = Conditions(
        delay=0.030,
        loss=RandomLoss(rate=0.02),
        blackouts=(Blackout(start=4.0, length=outage),),
    )
    profile = both_ways(conditions)
    waits = [
        live_again_after(VirtualPair(dev_pair, profile=profile, seed=seed), outage)
        for seed in range(9)
    ]
    print(outage, sorted(waits))
    assert statistics.median(waits) < 0.75


def test_a_port_change_keeps_the_path_state_and_a_new_address_resets_it(
    dev_pair: DevPair,
) -> None:
    pair = VirtualPair(dev_pair)
    server = pair.server.quic
    pair.client.quic.send_stream_data(0, b"GO")
    pair.transmit(pair.client)
    pair.run(0.5)
    server.send_stream_data(0, bytes(200_000))
    pair.transmit(pair.server)
    pair.run(3.0)
    grown = server.congestion_window
    assert grown > 20_000
    assert server.smoothed_rtt == pytest.approx(0.060, abs=0.01)

    def move(address: tuple[str, int]) -> None:
        pair.path.client_address = address
        for _ in range(3):
            pair.client.quic.send_ping(0)
            pair.transmit(pair.client)
            pair.run(0.2)

    move(("192.0.2.1", 50002))
    assert server.path_resets == 0
    assert server.congestion_window >= grown // 2
    before = server._loss._cc
    move(("198.51.100.7", 50002))
    assert server.path_resets == 1
    assert server._loss._cc is not before
    assert server.congestion_window < grown
    # And audio still flows.
    count = len(pair.client.events)
    server.send_stream_data(0, bytes(640))
    pair.transmit(pair.server)
    pair.run(0.5)
    assert any(isinstance(e, StreamDataReceived) for e in pair.client.events[count:])


# HTTP/3


def http3(pair: VirtualPair) -> tuple[Http3, Http3, list[object]]:
    """Both HTTP/3 layers, and what the server's says."""
    client, server = Http3(pair.client.quic), Http3(pair.server.quic)
    heard: list[object] = []
    ignored: list[object] = []
    pair.server.on_event = lambda event: heard.extend(server.handle_event(event))
    pair.client.on_event = lambda event: ignored.extend(client.handle_event(event))
    pair.transmit(pair.client)
    pair.transmit(pair.server)
    pair.run(0.5)
    return client, server, heard


def test_no_dynamic_table_is_used_in_either_direction(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    client, server, heard = http3(pair)
    assert server.sent_settings is not None
    assert server.sent_settings[0x01] == server.sent_settings[0x07] == 0
    assert server.sent_settings[0x06] == 65536
    for number in range(5):
        client.respond(4 * number, [*REQUEST, (b"x-same", b"y" * 50)], end_stream=True)
    pair.transmit(pair.client)
    pair.run(0.5)
    assert sum(isinstance(event, HeadersReceived) for event in heard) == 5
    assert client._encoder_bytes_sent == 0


def test_a_header_block_that_never_ends_is_refused_at_its_announcement(
    dev_pair: DevPair,
) -> None:
    pair = VirtualPair(dev_pair)
    _, server, _ = http3(pair)
    endless = bytes([0x01]) + (1 << 40 | 0b11 << 62).to_bytes(8, "big")
    pair.client.quic.send_stream_data(0, endless + bytes(100))
    pair.transmit(pair.client)
    pair.run(0.5)
    closed = pair.server.quic._close_event
    assert closed is not None
    assert closed.error_code == H3Error.H3_EXCESSIVE_LOAD
    assert sum(len(stream.buffer) for stream in server._stream.values()) < 70_000


def test_headers_of_the_largest_size_still_pass(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    client, _, heard = http3(pair)
    client.respond(0, [*REQUEST, (b"x-long", b"a" * 40_000)], end_stream=True)
    pair.transmit(pair.client)
    pair.run(2.0)
    assert any(isinstance(event, HeadersReceived) for event in heard)


def test_writing_after_stop_sending_is_refused_and_leaks_no_stream(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    client, server, _ = http3(pair)
    open_before = server.open_streams
    for number in range(50):
        stream_id = 4 * number
        client.respond(stream_id, REQUEST, end_stream=True)
        pair.transmit(pair.client)
        pair.run(0.1)
        assert server.respond(stream_id, [(b":status", b"200")])
        assert server.write(stream_id, b"first")
        pair.client.quic.stop_stream(stream_id, 0)
        pair.transmit(pair.client)
        pair.run(0.2)
        assert not server.write(stream_id, b"second")
        assert not server.write(stream_id, b"", end_stream=True)
        assert not server.respond(stream_id, [(b":status", b"200")])
        pair.transmit(pair.server)
        pair.run(0.2)
    assert server.open_streams == open_before
    assert pair.server.quic._close_event is None
    assert len(pair.server.quic._streams) < 20


def test_an_aborted_stream_is_forgotten_and_takes_no_more(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    client, server, _ = http3(pair)
    open_before = server.open_streams
    client.respond(0, REQUEST, end_stream=True)
    pair.transmit(pair.client)
    pair.run(0.2)
    server.respond(0, [(b":status", b"200")])
    server.abort(0, 0x54454E10)
    assert not server.write(0, b"more")
    pair.transmit(pair.server)
    pair.run(0.2)
    assert server.open_streams == open_before
