"""What clients are told whose connection is no more, by a server that remembers or does not."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from aioquic.quic.events import ConnectionTerminated
from qh3.quic.configuration import QuicConfiguration as OtherConfiguration
from qh3.quic.connection import QuicConnection as OtherConnection
from qh3.quic.events import ConnectionTerminated as OtherTerminated
from qh3.quic.events import HandshakeCompleted as OtherCompleted

from quicserver.afterlife import Afterlife
from quicserver.limits import DoorLimits
from tenuto.client import StreamCut, Trust, open_stream
from tenuto.errors import OperatorError
from tenuto.quic import KEEP_ALIVE, ResetKey
from tests.conftest import StartServer
from tests.quicserver.test_hostile import RawClient
from tests.support.relay import SwitchingRelay

KEY = ResetKey(bytes(32))


async def test_our_client_learns_at_once_that_its_server_was_started_anew(
    start_server: StartServer, ca_file: Path
) -> None:
    first, second = await start_server(), await start_server()
    relay = SwitchingRelay(first.port)
    stream = open_stream(
        f"https://localhost:{relay.port}/v1/speak",
        transport="quic",
        params={"tone": "440", "seconds": "60", "lead": "0.2"},
        trust=Trust(cafile=ca_file),
        resume=None,
    )
    heard = 0
    began = 0.0
    with pytest.raises(StreamCut, match="has forgotten the connection"):
        async with asyncio.timeout(10), stream as frames:
            async for _frame in frames:
                heard += 1
                if heard == 25:
                    relay.server = second.port
                    began = time.monotonic()
    relay.close()
    # The client's next packet, its ping of every second at the latest, is answered.
    assert time.monotonic() - began < 1.5
    assert second._quic is not None
    assert second._quic.afterlife["resets_sent"] >= 1


async def test_a_client_that_shares_no_code_with_us_takes_our_reset(
    start_server: StartServer, ca_file: Path
) -> None:
    first, second = await start_server(), await start_server()
    configuration = OtherConfiguration(
        is_client=True, alpn_protocols=["h3"], server_name="localhost", cafile=str(ca_file)
    )
    client = OtherConnection(configuration=configuration)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.setblocking(False)
        server = ("127.0.0.1", first.port)
        client.connect(server, now=time.monotonic())
        end, over = time.monotonic() + 5.0, None
        port, pinged, changes = first.port, 0.0, end
        while over is None and (now := time.monotonic()) < end:
            if now >= changes:
                port = second.port
            if port == second.port and now - pinged > 0.1:
                pinged = now
                client.send_ping(1)
            for data, _ in client.datagrams_to_send(now):
                link.sendto(data, ("127.0.0.1", port))
            await asyncio.sleep(0.002)
            with contextlib.suppress(BlockingIOError):
                client.receive_datagram(link.recv(2000), server, time.monotonic())
            timer = client.get_timer()
            if timer is not None and timer <= time.monotonic():
                client.handle_timer(time.monotonic())
            while (event := client.next_event()) is not None:
                if isinstance(event, OtherCompleted):
                    changes = time.monotonic() + 0.3
                if isinstance(event, OtherTerminated):
                    over = event
    assert port == second.port
    assert over is not None
    assert second._quic is not None
    assert second._quic.afterlife["resets_sent"] >= 1


async def test_a_close_that_was_lost_is_said_again(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    quic = server._quic
    assert quic is not None
    client = RawClient(server.port, ca_file)
    await client.connect()
    (peer,) = quic._ids
    await client.run(0.1)
    peer.close(0x100, "enough")
    assert quic.connections == 0
    await asyncio.sleep(0.02)
    client._socket.recv(2000)  # it was sent, and is lost
    client.quic.send_ping(1)
    await client.run(1.0, until=ConnectionTerminated)
    assert client.quic._close_event is not None
    assert client.quic._close_event.reason_phrase == "enough"
    assert quic.afterlife == {"closes_repeated": 1, "resets_sent": 0}
    client.close()


class Sent:
    """Where an `Afterlife` sends."""

    def __init__(self) -> None:
        self.datagrams: list[bytes] = []

    def __call__(self, local: socket.socket, data: bytes, address: object) -> None:
        self.datagrams.append(data)


@pytest.fixture
def local() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        yield bound


ADDRESS = ("192.0.2.1", 40000)


def test_a_close_is_repeated_ever_more_rarely_and_not_for_ever(local: socket.socket) -> None:
    sent = Sent()
    after = Afterlife(KEY, DoorLimits(), sent)
    after.remember([b"12345678"], [b"x" * 50], ADDRESS, local, until=1.0)
    for _ in range(100):
        assert after.repeat(b"12345678", 40, 0.5)
    assert len(sent.datagrams) == 7  # the packets 1, 2, 4, 8, 16, 32, 64
    assert not after.repeat(b"12345678", 40, 1.0)
    assert not after.repeat(b"87654321", 40, 0.5)
    after.expire(1.0)
    assert len(after) == 0
    assert not after._by_id


def test_a_repeated_close_amplifies_no_forged_packet(local: socket.socket) -> None:
    sent = Sent()
    after = Afterlife(KEY, DoorLimits(), sent)
    after.remember([b"12345678"], [b"x" * 1200], ADDRESS, local, until=1.0)
    assert after.repeat(b"12345678", 40, 0.5)
    assert sent.datagrams == []
    assert after.repeat(b"12345678", 400, 0.5)
    assert len(sent.datagrams) == 1


def test_the_table_of_closes_is_bounded(local: socket.socket) -> None:
    after = Afterlife(KEY, DoorLimits(max_closed=10), Sent())
    for number in range(30):
        ids = [bytes((number, each)) for each in range(9)]
        after.remember(ids, [b"x"], ADDRESS, local, until=1.0)
    assert len(after) == 10
    assert len(after._by_id) == 90
    assert not after.repeat(bytes((19, 0)), 40, 0.5)
    assert after.repeat(bytes((20, 0)), 40, 0.5)


def test_no_more_resets_a_second_than_allowed(local: socket.socket) -> None:
    sent = Sent()
    after = Afterlife(KEY, DoorLimits(resets_per_second=100), sent)
    packet = b"\x40" + bytes(60)
    for number in range(5000):
        after.reset(packet, 8, ADDRESS, local, 10.0 + number / 1000)
    assert 590 <= len(sent.datagrams) <= 601
    assert after.resets_sent == len(sent.datagrams)


def test_an_idle_timeout_that_one_lost_ping_would_reach_is_refused() -> None:
    DoorLimits(idle_timeout=2 * KEEP_ALIVE)
    with pytest.raises(OperatorError, match=r"7\.9 s does not outlast a lost PING.*4 s apart"):
        DoorLimits(idle_timeout=7.9)
