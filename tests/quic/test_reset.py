"""Stateless resets: tokens by key, their size, and a client that ends at once (RFC 9000 10.3)."""

from __future__ import annotations

import os

import pytest
from aioquic.quic.events import ConnectionTerminated

from tenuto.quic import ResetKey
from tenuto.tls import DevPair
from tests.support.virtual import SERVER, VirtualPair

KEY = bytes(range(32))


def short_packet(destination: bytes, size: int) -> bytes:
    return (b"\x43" + destination + os.urandom(size))[:size]


def test_every_id_of_a_connection_has_the_token_of_the_key(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair, reset_key=ResetKey(KEY))
    key = ResetKey(KEY)
    ids = pair.server.quic._host_cids
    assert len(ids) > 1
    assert all(each.stateless_reset_token == key.token(each.cid) for each in ids)
    # The first one's went in the transport parameters, the others' in frames.
    client = pair.client.quic
    assert client._peer_cid.stateless_reset_token == key.token(client._peer_cid.cid)
    assert len({each.stateless_reset_token for each in ids}) == len(ids)


@pytest.mark.parametrize("size", [22, 23, 43, 44, 1200])
def test_a_reset_is_smaller_than_what_it_answers(size: int) -> None:
    answer = ResetKey(KEY).answer(short_packet(b"\x01" * 8, size), 8)
    assert answer is not None
    assert 21 <= len(answer) < size
    assert answer[0] & 0xC0 == 0x40
    assert answer[-16:] == ResetKey(KEY).token(b"\x01" * 8)


def test_what_is_too_small_is_not_answered() -> None:
    for size in range(22):
        assert ResetKey(KEY).answer(short_packet(b"\x01" * 8, size), 8) is None


def test_two_servers_do_not_answer_each_other_for_ever() -> None:
    keys = (ResetKey(KEY), ResetKey(bytes(32)))
    packet: bytes | None = short_packet(b"\x01" * 8, 1200)
    rounds = 0
    while packet is not None:
        packet = keys[rounds % 2].answer(packet, 8)
        rounds += 1
    assert rounds < 30


def test_a_short_key_is_none() -> None:
    with pytest.raises(ValueError, match="a key of 15 bytes"):
        ResetKey(bytes(15))


def ended(pair: VirtualPair) -> list[ConnectionTerminated]:
    return [event for event in pair.client.events if isinstance(event, ConnectionTerminated)]


def test_a_client_ends_at_once_and_says_nothing_more(dev_pair: DevPair) -> None:
    pair = VirtualPair(dev_pair, reset_key=ResetKey(KEY))
    client = pair.client.quic
    packet = short_packet(client._peer_cid.cid, 60)
    answer = ResetKey(KEY).answer(packet, 8)
    assert answer is not None
    sent = pair.client.sent
    pair.deliver(pair.client, answer, SERVER)
    pair.run(pair.delay + 0.001)
    assert client.was_reset
    assert [event.reason_phrase for event in ended(pair)] == [
        "the peer has forgotten the connection"
    ]
    client.send_ping(0)
    pair.run(1.0)
    assert pair.client.sent == sent


@pytest.mark.parametrize("spoil", [15, 16, 20])
def test_a_token_that_is_not_quite_right_is_noise(dev_pair: DevPair, spoil: int) -> None:
    pair = VirtualPair(dev_pair, reset_key=ResetKey(KEY))
    answer = ResetKey(KEY).answer(short_packet(pair.client.quic._peer_cid.cid, 60), 8)
    assert answer is not None
    wrong = answer[:-1] + bytes((answer[-1] ^ spoil,))
    short = answer[-20:]  # too short to be a reset, token and all
    answer = short if spoil == 20 else wrong
    pair.deliver(pair.client, answer, SERVER)
    pair.run(0.2)
    assert not pair.client.quic.was_reset
    assert ended(pair) == []


def test_a_server_takes_no_resets(dev_pair: DevPair) -> None:
    """Only clients have been given tokens; noise must not end a server's connection."""
    pair = VirtualPair(dev_pair, reset_key=ResetKey(KEY))
    own = pair.server.quic._host_cids[0]
    answer = ResetKey(KEY).answer(short_packet(own.cid, 60), 8)
    assert answer is not None
    pair.deliver(pair.server, answer, ("192.0.2.1", 40001))
    pair.run(0.2)
    assert not pair.server.quic.was_reset
