"""Real time over a path of 800 ms, by a session, a sender's limit and QUIC's own windows."""

from __future__ import annotations

import math

from aioquic.quic.events import QuicEvent, StreamDataReceived

from netem.profile import Conditions
from quicserver.limits import DoorLimits
from tenuto.media import AudioFormat, Piece
from tenuto.quic import ReceiveWindow
from tenuto.session import Session
from tenuto.tls import DevPair
from tests.support.virtual import VirtualPair, both_ways

TICK = 0.02
STREAM = 0
LEAD = 2.0


def test_a_round_trip_of_800_ms_still_carries_real_time(dev_pair: DevPair) -> None:
    pair = VirtualPair(
        dev_pair,
        profile=both_ways(Conditions(delay=0.4)),
        window=ReceiveWindow(stream=256 * 1024),
        handshake=3.0,
    )
    server, limits = pair.server.quic, DoorLimits()
    audio = AudioFormat()
    size = audio.frame_size
    session = Session("s", audio, pair.now)
    cursor = session.attach("a", pair.now, lead=LEAD)
    arrivals: list[float] = []
    received = 0
    most_held = 0
    silences = 0

    def arrive(event: QuicEvent) -> None:
        nonlocal received
        if isinstance(event, StreamDataReceived) and event.stream_id == STREAM:
            received += len(event.data)
            arrivals.extend([pair.now] * (received // size - len(arrivals)))

    def tick() -> None:
        nonlocal most_held, silences
        now, rtt = pair.now, server.smoothed_rtt
        session.confirm(cursor, server.acknowledged(STREAM) // size, now, rtt)
        # Before its first sample QUIC thinks of 0.1 s; nothing depends on it for so long.
        silences += cursor.silent(now) and rtt > 0.1
        while session.wants_more(now):
            session.append(Piece(bytes(size), audio.samples_per_frame))
        # What the QUIC door allows to be under way: lead, two round trips and 200 ms.
        wanted = math.ceil((LEAD + 2 * rtt + 0.2) / 0.020) * size
        room = min(wanted, limits.most_unacknowledged) - server.held(STREAM)
        room = min(room, limits.most_unsent - server.unsent(STREAM))
        if room >= size:
            for frame in session.take(cursor, now, room // size):
                server.send_stream_data(STREAM, frame.payload)
        most_held = max(most_held, server.held(STREAM))
        pair.transmit(pair.server)

    pair.client.on_event = arrive
    pair.client.quic.send_stream_data(STREAM, b"play")
    pair.transmit(pair.client)
    pair.run(1.0)
    pair.every(TICK, tick, until=60.0)
    pair.run(62.0)
    assert len(arrivals) >= 60 / TICK
    began = arrivals[0]
    spare = [began + number * TICK - arrived for number, arrived in enumerate(arrivals)]
    # The first congestion window is 0.4 s of this audio for each round trip of 0.8 s: a player
    # that begins with the first frame waits once. From the second on it has all of its lead.
    assert min(spare) > -2 * TICK - 0.5
    assert min(spare[100:]) >= 0
    assert min(spare[300:]) > LEAD - 0.1
    assert most_held <= audio.bytes_per_second * (LEAD + 2 * 0.85 + 0.2)
    assert silences == 0
