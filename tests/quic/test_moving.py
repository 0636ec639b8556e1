"""A listener that only receives, behind a NAT that forgets it, or a radio that fades."""

from __future__ import annotations

import dataclasses
import statistics

import pytest

from netem.profile import Blackout, Conditions, Nat, RandomLoss
from tenuto.quic.connection import ABSENCE
from tenuto.tls import DevPair
from tests.support.listening import Listening
from tests.support.virtual import VirtualPair, both_ways


@pytest.mark.parametrize(
    ("nat", "seconds", "rebindings"),
    [
        (Nat(rebind_at=(5.0,)), 8.0, 1),
        (Nat(rebind_at=(5.0, 5.5, 6.0, 6.5, 7.0)), 9.0, 5),
        (Nat(rebind_every=2.0), 20.0, 10),
        (Nat(rebind_every=5.0), 60.0, 12),
        # More than there are connection IDs, paths and routes.
        (Nat(rebind_every=1.0), 30.0, 30),
    ],
)
def test_rebindings_that_nobody_announces_lose_nothing(
    dev_pair: DevPair, nat: Nat, seconds: float, rebindings: int
) -> None:
    profile = dataclasses.replace(both_ways(Conditions(delay=0.030)), nat=nat)
    pair = VirtualPair(dev_pair, profile=profile)
    listening = Listening(pair, seconds=seconds)
    pair.run(seconds + 1.0)
    assert len(listening.heard) == len(listening.made) == round(seconds / 0.020)
    assert listening.gap() <= 0.300
    assert pair.server.quic.path_changes >= rebindings - 1
    assert pair.server.quic.path_resets == 0


@pytest.mark.parametrize("outage", [1.0, 3.0, 10.0])
def test_audio_is_live_within_200_ms_of_an_outages_end(dev_pair: DevPair, outage: float) -> None:
    alive, caught_up = [], []
    for seed in range(10):
        conditions = Conditions(
            delay=0.030,
            loss=RandomLoss(rate=0.02),
            blackouts=(Blackout(start=4.0, length=outage),),
        )
        pair = VirtualPair(dev_pair, profile=both_ways(conditions), seed=seed)
        # A server writes no more than 0.5 s and two round trips to one who is not heard.
        listening = Listening(pair, seconds=outage + 6.0, held=20_000)
        end = 1000.0 + 4.0 + outage
        pair.run(outage + 6.0)
        alive.append(listening.alive_after(end))
        caught_up.append(listening.caught_up_after(end))
    print(outage, sorted(alive), sorted(caught_up))
    assert statistics.median(alive) <= 0.200
    assert statistics.median(caught_up) <= 0.500


def test_what_was_under_way_through_an_outage_is_sent_again_at_once(dev_pair: DevPair) -> None:
    blackouts = (Blackout(start=4.0, length=3.0),)
    conditions = Conditions(delay=0.030, blackouts=blackouts)
    pair = VirtualPair(dev_pair, profile=both_ways(conditions))
    listening = Listening(pair, seconds=8.0, held=20_000)
    pair.run(5.45)
    server = pair.server.quic
    assert server.held(0) >= 20_000
    pair.run(0.25)
    # One round trip after the first ping that passed, with the window of a new path.
    assert listening.heard[-1] > 1007.0
    assert server.held(0) <= 12_000
    assert server.congestion_window >= 12_000


def test_who_is_away_is_not_standing_still(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    server = pair.server.quic

    def ping() -> None:
        pair.client.quic.probe(padded=False)
        pair.transmit(pair.client)

    pair.every(1.0, ping, until=10.0)
    pair.run(10.0)
    assert server.heard_for(pair.now) > 10.0
    pair.run(ABSENCE + 0.5)
    assert server.heard_for(pair.now) == 0.0
    ping()
    pair.run(0.1)
    assert server.heard_for(pair.now) < 0.1


def test_a_move_takes_another_connection_id_and_one_padded_ping_carries_three_datagrams(
    dev_pair: DevPair,
) -> None:
    pair = VirtualPair(dev_pair)
    client, server = pair.client.quic, pair.server.quic
    client.send_stream_data(0, b"GO")
    pair.transmit(pair.client)
    pair.run(0.5)
    server.send_stream_data(0, bytes(20_000))
    used = set()
    for port in range(50_000, 50_030):
        pair.path.client_address = ("192.0.2.1", port)
        used.add(client._peer_cid.cid)
        client.move(new_path=False)
        client.probe(padded=True)
        sizes = [len(data) for data, _ in client.datagrams_to_send(pair.now)]
        assert sizes == [client._max_datagram_size]
        client.probe(padded=True)
        pair.transmit(pair.client)
        pair.run(0.3)
    assert len(used) == 30
    assert server.path_changes == 30
    assert (client.path_resets, server.path_resets) == (0, 0)
    pair.run(1.0)
    assert server._close_event is client._close_event is None


def test_a_move_to_another_address_begins_the_path_afresh(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair)
    client = pair.client.quic
    assert client.smoothed_rtt == pytest.approx(0.060, abs=0.01)
    client.move(new_path=True)
    assert client.path_resets == 1
    assert client.smoothed_rtt == client._configuration.initial_rtt


@pytest.mark.parametrize("address", [("192.0.2.1", 40001), ("2001:db8::1", 40001)])
def test_what_leaves_fits_a_path_of_1280_bytes(dev_pair: DevPair, address: tuple[str, int]) -> None:
    pair = VirtualPair(dev_pair)
    ends = (pair.client.quic, pair.server.quic)
    headers = 48 if ":" in address[0] else 28
    assert all(each._max_datagram_size + headers <= 1280 for each in ends)
