"""Whatever version a client asks for, it learns which ones are spoken (RFC 9000 section 6)."""

from __future__ import annotations

import asyncio
import random
import socket

import pytest

from tests.conftest import StartServer

RESERVED = b"\x1a\x2a\x3a\x4a"


async def answer_to(port: int, data: bytes) -> bytes:
    """What comes back within half a second; nothing is empty."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setblocking(False)
        client.connect(("127.0.0.1", port))
        client.send(data)
        try:
            async with asyncio.timeout(0.5):
                return await loop.sock_recv(client, 2000)
        except TimeoutError:
            return b""


def packet(size: int, *, first: int = 0xC0, to: bytes = b"to" * 5, of: bytes = b"of" * 4) -> bytes:
    ids = bytes([len(to)]) + to + bytes([len(of)]) + of
    # Of an unknown version nothing behind the connection IDs means anything.
    rest = random.Random(size).randbytes(size)
    return (bytes([first]) + RESERVED + ids + rest)[:size]


@pytest.mark.parametrize("size", [1200, 1201, 1252, 1350, 1452, 1472, 9000])
@pytest.mark.parametrize("first", [0x80, 0xBF, 0xC0, 0xD5, 0xE0, 0xFF])
async def test_any_packet_of_an_unknown_version_is_answered(
    start_server: StartServer, size: int, first: int
) -> None:
    server = await start_server()
    answer = await answer_to(server.port, packet(size, first=first))
    assert answer[0] & 0x80
    assert answer[1:5] == bytes(4)
    assert answer[5:] == (
        b"\x08" + b"of" * 4 + b"\x0a" + b"to" * 5 + b"\x00\x00\x00\x01\x6b\x33\x43\xcf"
    )


@pytest.mark.parametrize("length", [0, 20, 21, 255])
async def test_connection_ids_of_other_versions_may_be_long(
    start_server: StartServer, length: int
) -> None:
    server = await start_server()
    to, of = b"t" * length, b"o" * length
    answer = await answer_to(server.port, packet(1200, to=to, of=of))
    assert answer[5:].startswith(bytes([length]) + of + bytes([length]) + to)


async def test_what_is_small_or_negotiates_itself_is_not_answered(
    start_server: StartServer,
) -> None:
    server = await start_server()
    negotiation = packet(1200)[:1] + bytes(4) + packet(1200)[5:]
    cut = b"\xc0" + RESERVED + b"\xff" + bytes(100)
    for data in (packet(1199), negotiation, cut, b"\xc0" + RESERVED):
        assert await answer_to(server.port, data) == b""
    assert server._quic is not None
    assert server._quic.tally.datagrams_dropped == 4
    assert server._quic.tally.faults == 0
