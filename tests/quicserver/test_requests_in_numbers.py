"""Stream credit: many requests in a row, many at once, peers that allow few streams; GOAWAY."""

from __future__ import annotations

from pathlib import Path

import pytest
from aioquic.h3.connection import H3Connection

from tests.conftest import StartServer
from tests.quicserver.test_hostile import RawClient

REQUEST = [
    (b":method", b"GET"),
    (b":scheme", b"https"),
    (b":authority", b"localhost"),
    (b":path", b"/healthz"),
]


def ok(client: RawClient) -> int:
    return sum(b'"status":"ok"' in data for data in client.data.values())


async def test_a_thousand_requests_in_a_row(start_server: StartServer, ca_file: Path) -> None:
    server = await start_server()
    client = RawClient(server.port, ca_file)
    await client.connect()
    http = H3Connection(client.quic)
    for _ in range(50):
        for _ in range(20):
            stream = client.quic.get_next_available_stream_id()
            http.send_headers(stream, REQUEST, end_stream=True)
        before = ok(client)
        for _ in range(100):
            await client.run(0.02)
            if ok(client) >= before + 20:
                break
    assert ok(client) == 1000
    client.close()


@pytest.mark.parametrize("count", [200])
async def test_many_requests_at_once(count: int, start_server: StartServer, ca_file: Path) -> None:
    server = await start_server()
    client = RawClient(server.port, ca_file)
    await client.connect()
    http = H3Connection(client.quic)
    for _ in range(count):
        stream = client.quic.get_next_available_stream_id()
        http.send_headers(stream, REQUEST, end_stream=True)
    for _ in range(100):
        await client.run(0.1)
        if ok(client) == count:
            break
    assert ok(client) == count
    client.close()


async def test_everybody_is_told_to_go_elsewhere(start_server: StartServer, ca_file: Path) -> None:
    server = await start_server()
    assert server._quic is not None
    client = RawClient(server.port, ca_file)
    await client.connect()
    http = H3Connection(client.quic)
    await client.run(0.1)
    server._quic.goaway()
    await client.run(0.1)
    http.send_headers(0, REQUEST, end_stream=True)
    await client.run(0.3)
    assert ok(client) == 0
    assert server._quic.requests == 0
    client.close()
