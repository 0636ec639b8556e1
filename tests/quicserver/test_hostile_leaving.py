"""Clients that leave as rudely as they can, many times over, while a listener plays."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from aioquic.h3.connection import H3Connection
from aioquic.quic.events import StreamReset

from bench.listening import listen
from quicserver.app import Server
from quicserver.limits import DoorLimits
from tenuto.telemetry.events import Event, PeerFaulted
from tests.conftest import StartServer
from tests.quicserver.test_hostile import PLAY, RawClient
from tests.support.fetch import fetch_soon

STREAM = b"/v1/speak?source=counting&frames=100000&lead=max"


@asynccontextmanager
async def somebody_plays(server: Server, ca: Path, events: list[Event]) -> AsyncIterator[None]:
    """Whatever happens meanwhile, one on each door hears all, nothing faults or stays behind."""
    playing = [
        asyncio.create_task(listen(server.port, ca, PLAY, transport=door, seconds=4.0))
        for door in ("quic", "tcp")
    ]
    await asyncio.sleep(0.5)
    yield
    for heard in await asyncio.gather(*playing):
        assert heard.complete
        assert len(heard.sequences) > 120
    assert not [event for event in events if isinstance(event, PeerFaulted)]
    assert server._tcp is not None
    async with asyncio.timeout(4):
        while server.host.listeners or server._tcp.connections:
            await asyncio.sleep(0.05)


def tcp_client(port: int, ca: Path, moment: str) -> socket.socket:
    """A connection at that moment of its life, which a close will reset."""
    raw = socket.create_connection(("127.0.0.1", port), timeout=5)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if moment == "connected":
        return raw
    if moment == "half a hello":
        raw.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        return raw
    secure = ssl.create_default_context(cafile=ca).wrap_socket(raw, server_hostname="localhost")
    if moment == "half a request":
        secure.sendall(b"GET /v1/sp")
    elif moment != "hands shaken":
        secure.sendall(b"GET " + STREAM + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        if moment == "in mid-stream":
            secure.recv(100)
    return secure


async def test_a_storm_of_resets(
    start_server: StartServer, ca_file: Path, events: list[Event]
) -> None:
    server = await start_server()
    draw = random.Random(11)
    moments = ("connected", "half a hello", "hands shaken", "half a request", "asked")
    async with somebody_plays(server, ca_file, events):
        for _ in range(12):
            batch = await asyncio.gather(
                *(
                    asyncio.to_thread(tcp_client, server.port, ca_file, draw.choice(moments))
                    for _ in range(5)
                ),
                asyncio.to_thread(tcp_client, server.port, ca_file, "in mid-stream"),
            )
            for each in batch:
                each.close()


async def test_half_a_connection_is_none(
    start_server: StartServer, ca_file: Path, events: list[Event]
) -> None:
    """A FIN without close_notify, from a client that reads on."""
    server = await start_server()
    async with somebody_plays(server, ca_file, events):
        for moment in ("hands shaken", "half a request", "asked", "in mid-stream"):
            client = await asyncio.to_thread(tcp_client, server.port, ca_file, moment)
            below = socket.socket(fileno=client.detach())
            below.shutdown(socket.SHUT_WR)
            below.settimeout(0.1)
            async with asyncio.timeout(3):
                while True:  # until the server ends it, too
                    await asyncio.sleep(0.01)
                    try:
                        if not below.recv(65536):
                            break
                    except TimeoutError:
                        continue
                    except ConnectionError:
                        break
            below.close()


def request(path: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":authority", b"localhost"),
        (b":path", path),
    ]


async def test_a_flood_of_stop_sending(
    start_server: StartServer, ca_file: Path, events: list[Event]
) -> None:
    server = await start_server()
    client = RawClient(server.port, ca_file)
    async with somebody_plays(server, ca_file, events):
        await client.connect()
        http = H3Connection(client.quic)
        for first in range(0, 200, 40):
            streams = [4 * number for number in range(first, first + 40)]
            for stream_id in streams:
                http.send_headers(stream_id, request(STREAM), end_stream=True)
            await client.run(0.05 if first % 80 else 0.0)
            for _ in range(3):  # and again, for streams that are gone already
                for stream_id in streams:
                    with suppress(ValueError):  # ours is over already
                        client.quic.stop_stream(stream_id, 0x10C)
                await client.run(0.05)
            await client.run(0.1)
        http.send_headers(800, request(b"/healthz"), end_stream=True)
        await client.run(0.5)
        assert b'"status":"ok"' in client.data.get(800, b"")
        assert server._quic is not None
        assert server._quic.requests == 1  # that of the listener that plays
    client.close()


async def test_packets_replayed_after_the_close(
    start_server: StartServer, ca_file: Path, events: list[Event]
) -> None:
    server = await start_server()
    assert server._quic is not None
    client = RawClient(server.port, ca_file)
    recorded: list[bytes] = []
    to_send = client.quic.datagrams_to_send

    def record(now: float) -> list[tuple[bytes, tuple[str, int]]]:
        datagrams = to_send(now)
        recorded.extend(data for data, _ in datagrams)
        return datagrams

    client.quic.datagrams_to_send = record  # type: ignore[method-assign]
    async with somebody_plays(server, ca_file, events):
        await client.connect()
        H3Connection(client.quic).send_headers(0, request(STREAM), end_stream=True)
        await client.run(0.3)
        client.quic.close(error_code=0x100)
        await client.run(0.2)
        answered = server._quic.tally.datagrams_sent
        before = server._quic.connections
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gun:
            for _ in range(10):
                for data in recorded:
                    gun.sendto(data, ("127.0.0.1", server.port))
                await asyncio.sleep(0.02)
        assert server.host.listeners == 2
        # Once the close is forgotten each ID in an old Initial may begin one handshake, no more.
        assert server._quic.connections <= before + 3
        assert server._quic.afterlife["resets_sent"] <= DoorLimits().resets_per_second * 2
        assert server._quic.tally.datagrams_sent - answered < 10 * len(recorded) + 300
    client.close()


async def test_requests_after_goaway(
    start_server: StartServer, ca_file: Path, events: list[Event]
) -> None:
    """Each is rejected so that it may be sent elsewhere, and what runs goes on."""
    server = await start_server()
    assert server._quic is not None
    client = RawClient(server.port, ca_file)
    codes: dict[int, int] = {}
    next_event = client.quic.next_event

    def spy() -> object:
        event = next_event()
        if isinstance(event, StreamReset):
            codes[event.stream_id] = event.error_code
        return event

    client.quic.next_event = spy  # type: ignore[method-assign, assignment]
    async with somebody_plays(server, ca_file, events):
        await client.connect()
        http = H3Connection(client.quic)
        http.send_headers(0, request(b"/v1/speak?tone=440&seconds=60&lead=0.2"), end_stream=True)
        await client.run(0.3)
        for _ in range(3):
            server._quic.goaway()
        await client.run(0.1)
        heard = len(client.data[0])
        for stream_id in range(4, 204, 4):
            http.send_headers(stream_id, request(STREAM), end_stream=True)
        await client.run(0.5)
        assert codes == dict.fromkeys(range(4, 204, 4), 0x10B)
        assert len(client.data[0]) > heard
        client.quic.close(error_code=0x100)
        await client.run(0.1)
    client.close()


@pytest.mark.parametrize("size", [0, 1, 20, 21, 43, 1200])
async def test_forged_resets_end_nobody(
    size: int, start_server: StartServer, ca_file: Path, events: list[Event]
) -> None:
    """Short-header noise under the true connection ID, from wherever."""
    server = await start_server()
    assert server._quic is not None
    client = RawClient(server.port, ca_file)
    await client.connect()
    (peer,) = server._quic._ids
    draw = random.Random(size)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gun:
        for connection_id in server._quic._ids[peer]:
            for _ in range(20):
                gun.sendto(
                    (b"\x40" + connection_id + draw.randbytes(size)), ("127.0.0.1", server.port)
                )
    await asyncio.sleep(0.1)
    before = time.monotonic()
    H3Connection(client.quic).send_headers(0, request(b"/healthz"), end_stream=True)
    await client.run(0.5)
    assert b'"status":"ok"' in client.data[0]
    assert time.monotonic() - before < 2
    assert not [event for event in events if isinstance(event, PeerFaulted)]
    client.close()
    assert (await fetch_soon("quic", server.port, "/healthz", ca=ca_file)).status == 200
