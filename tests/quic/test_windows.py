"""Receive windows follow what was consumed, whatever offsets a peer claims (RFC 9000 4)."""

from __future__ import annotations

import tracemalloc

from aioquic import tls
from aioquic.quic.events import ConnectionTerminated, StreamDataReceived
from aioquic.quic.packet import QuicFrameType, QuicPacketType
from aioquic.quic.packet_builder import QuicPacketBuilder

from tenuto.quic import ReceiveWindow
from tenuto.tls import DevPair
from tests.support.virtual import CLIENT, VirtualPair


def sparse_packet(pair: VirtualPair, stream_id: int, offset: int) -> bytes:
    """A packet by the client with one byte of a stream at an offset of its choice."""
    quic = pair.client.quic
    builder = QuicPacketBuilder(
        host_cid=quic.host_cid,
        is_client=True,
        max_datagram_size=1200,
        packet_number=quic._packet_number,
        peer_cid=quic._peer_cid.cid,
        version=quic._version or 1,
    )
    builder.start_packet(QuicPacketType.ONE_RTT, quic._cryptos[tls.Epoch.ONE_RTT])
    frame = builder.start_frame(QuicFrameType.STREAM_BASE | 4 | 2, capacity=40)
    frame.push_uint_var(stream_id)
    frame.push_uint_var(offset)
    frame.push_uint_var(1)
    frame.push_bytes(b"z")
    datagrams, _ = builder.flush()
    quic._packet_number += 1
    return datagrams[0]


def test_sparse_offsets_at_the_top_of_the_window_do_not_widen_it(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    server = pair.server.quic
    pair.client.quic.send_stream_data(0, b"x")
    pair.transmit(pair.client)
    pair.run(1.0)
    tracemalloc.start()
    for _ in range(12):
        limit = server._streams[0].max_stream_data_local
        pair.deliver(pair.server, sparse_packet(pair, 0, limit - 1), CLIENT)
        pair.run(0.3)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert server._streams[0].max_stream_data_local <= 2 * ReceiveWindow().stream
    assert server._local_max_data.value <= 2 * ReceiveWindow().connection
    assert held < 2_000_000
    assert server._close_event is None


def test_sparse_offsets_on_every_stream_stay_within_the_connections_window(
    dev_pair: DevPair,
) -> None:
    pair = VirtualPair(dev_pair)
    server = pair.server.quic
    for stream_id in range(0, 400, 4):
        pair.deliver(
            pair.server, sparse_packet(pair, stream_id, ReceiveWindow().stream - 1), CLIENT
        )
    pair.run(0.3)
    held = sum(len(stream.receiver._buffer) for stream in server._streams.values())
    assert held <= ReceiveWindow().connection
    # The client went beyond what it was allowed and is told so.
    assert server._close_event is not None


def test_a_reader_that_consumes_gets_all_of_a_long_stream(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    sent = bytes(range(256)) * 16384
    pair.client.quic.send_stream_data(0, sent, end_stream=True)
    pair.transmit(pair.client)
    pair.run(60.0)
    received = b"".join(
        event.data for event in pair.server.events if isinstance(event, StreamDataReceived)
    )
    assert received == sent
    assert pair.server.quic._local_max_data.value <= len(sent) + ReceiveWindow().connection


def test_a_reader_that_stops_consuming_stops_the_sender_within_the_window(
    dev_pair: DevPair,
) -> None:
    pair = VirtualPair(dev_pair)
    server = pair.server.quic
    received = 0

    def on_event(event: object) -> None:
        nonlocal received
        if isinstance(event, StreamDataReceived):
            received += len(event.data)
            server.unconsumed(0, received)

    pair.server.on_event = on_event
    pair.client.quic.send_stream_data(0, bytes(4_000_000), end_stream=True)
    pair.transmit(pair.client)
    pair.run(30.0)
    assert 0 < received <= ReceiveWindow().stream
    # Consuming all of it lets the next window in.
    before = received
    server.unconsumed(0, 0)
    pair.transmit(pair.server)
    pair.run(1.0)
    assert before < received <= before + ReceiveWindow().stream


def test_reset_streams_give_their_credit_back_to_the_connection(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    client = pair.client.quic
    for number in range(60):
        stream_id = 4 * number
        # The end of the data travels, its beginning does not: nothing is ever delivered.
        pair.deliver(
            pair.server, sparse_packet(pair, stream_id, ReceiveWindow().stream - 1), CLIENT
        )
        pair.run(0.2)
        client._get_or_create_stream_for_send(
            stream_id
        ).sender.highest_offset = ReceiveWindow().stream
        client.reset_stream(stream_id, 0)
        pair.transmit(pair.client)
        pair.run(0.3)
    assert pair.server.quic._close_event is None
    assert not any(isinstance(event, ConnectionTerminated) for event in pair.server.events)


def test_finished_streams_make_room_for_new_ones_for_ever(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    for number in range(400):
        pair.client.quic.send_stream_data(4 * number, b"x" * 2000, end_stream=True)
        pair.transmit(pair.client)
        pair.run(0.1)
        pair.server.quic.send_stream_data(4 * number, b"", end_stream=True)
        pair.transmit(pair.server)
        pair.run(0.1)
    assert pair.server.quic._close_event is None
    assert len(pair.server.quic._streams) < 20
