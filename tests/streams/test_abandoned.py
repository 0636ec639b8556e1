"""Listeners that vanish in every way and at every moment: after the grace nothing is left."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from bench.rude import NeverReads
from fallback import TcpLimits
from quicserver.app import Server
from tenuto.client import StreamCut, Transport, Trust, open_stream
from tenuto.session import SessionLimits
from tenuto.sources import COUNTERS
from tests.conftest import StartServer
from tests.support.bothways import BothWays, both_ways

TIMES = 50
LIMITS = SessionLimits(retention=0.5)

MOMENTS = {
    "before the first byte": ("first_delay=600", 0.3),
    "while the source sleeps": ("delay=5", 0.3),
    "in mid-frame": ("run=111&delay=0.003&lead=max", 0.4),
    "10 ms before the end": ("frames=25&delay=0.02&lead=0.1", 0.49),
}
"""What is asked for, and after how many seconds its listener is gone."""

CLIENT = """
import socket, ssl, sys, time
context = ssl.create_default_context(cafile=sys.argv[2])
kept = []
for _ in range(int(sys.argv[4])):
    raw = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    kept.append(context.wrap_socket(raw, server_hostname="localhost"))
for each in kept:
    each.sendall(f"GET {sys.argv[3]} HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n".encode())
print("asked", flush=True)
time.sleep(600)
"""


def handles() -> int:
    return len(os.listdir("/proc/self/fd"))


@asynccontextmanager
async def nothing_left(
    server: Server, ca: Path, *, sources: int, patience: float
) -> AsyncIterator[None]:
    """Producers, sessions, listeners, tasks and file handles are afterwards what they were.

    And so many sources were at work in between.
    """

    def figures() -> tuple[int, ...]:
        host = server.host
        return (host.producers, len(host), host.listeners, COUNTERS.running)

    # What is opened once and for all is open by now.
    drop(await asyncio.to_thread(open_tls, server.port, ca, "/healthz"), abort=False)
    await asyncio.sleep(0.3)
    tasks, files, started = len(asyncio.all_tasks()), handles(), COUNTERS.started
    assert figures() == (0, 0, 0, 0)
    yield
    assert COUNTERS.started - started == sources
    for _ in range(round(patience / 0.05)):
        if not any(figures()) and len(asyncio.all_tasks()) <= tasks and handles() <= files:
            break
        await asyncio.sleep(0.05)
    assert figures() == (0, 0, 0, 0)
    assert len(asyncio.all_tasks()) <= tasks
    assert handles() <= files


def open_tls(port: int, ca: Path, path: str) -> ssl.SSLSocket:
    raw = socket.create_connection(("127.0.0.1", port), timeout=10)
    context = ssl.create_default_context(cafile=ca)
    connection = context.wrap_socket(raw, server_hostname="localhost")
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection


def drop(connection: ssl.SSLSocket, *, abort: bool) -> None:
    """By a FIN or a RST of the socket below TLS."""
    with socket.socket(fileno=connection.detach()) as raw:
        if abort:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def killed(port: int, ca: Path, path: str, after: float) -> None:
    """A process with all its connections, by SIGKILL."""
    arguments = [str(port), str(ca), path, str(TIMES)]
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CLIENT, *arguments, stdout=subprocess.PIPE
    )
    assert client.stdout is not None
    await client.stdout.readline()
    await asyncio.sleep(after)
    client.kill()
    await client.wait()


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("way", ["FIN", "RST", "kill -9"])
async def test_fifty_tcp_listeners_vanish(
    way: str, moment: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server(limits=LIMITS)
    query, after = MOMENTS[moment]
    path = f"/v1/speak?source=counting&{query}"

    async def one() -> None:
        connection = await asyncio.to_thread(open_tls, server.port, ca_file, path)
        await asyncio.sleep(after)
        drop(connection, abort=way == "RST")

    async with nothing_left(server, ca_file, sources=TIMES, patience=5):
        if way == "kill -9":
            await killed(server.port, ca_file, path, after)
        else:
            await asyncio.gather(*(one() for _ in range(TIMES)))


@pytest.mark.parametrize("way", ["STOP_SENDING", "silence"])
async def test_fifty_quic_listeners_vanish_at_each_moment(
    way: str, start_server: StartServer, ca_file: Path
) -> None:
    """Silence is what SIGKILL and a path that swallows everything look like from here."""
    server = await start_server(limits=LIMITS, idle_timeout=8.0)

    async def one(number: int, query: str, after: float) -> None:
        await asyncio.sleep(0.02 * number)
        rude = NeverReads(server.port, ca_file, f"/v1/speak?source=counting&{query}")
        stop = after if way == "STOP_SENDING" else None
        await rude.run(after + 0.3, stop_sending_after=stop)

    async with nothing_left(server, ca_file, sources=4 * TIMES, patience=15):
        moments = [moment for _ in range(TIMES) for moment in MOMENTS.values()]
        await asyncio.gather(*(one(number, *each) for number, each in enumerate(moments)))


async def test_a_path_that_goes_black_for_good_ends_the_source_after_the_grace(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No FIN, no RST, no CONNECTION_CLOSE: only time tells. Over either transport, at once."""
    monkeypatch.setattr("tenuto.quic.connection.KEEP_ALIVE", 0.5)
    monkeypatch.setattr("quicserver.limits.KEEP_ALIVE", 0.5)
    monkeypatch.setattr(
        "quicserver.app.TcpLimits", lambda **kw: TcpLimits(**{**kw, "write_deadline": 0.8})
    )
    grace = 0.8
    limits, began = SessionLimits(retention=grace), COUNTERS.started

    async def one(transport: Transport) -> None:
        server = await start_server(limits=limits, idle_timeout=1.0)
        async with both_ways(server.port) as ways:
            gone, ended = await black(server, ways, transport, ca_file)
        assert 0.4 < gone < 4.0, (transport, gone, ended)
        assert grace <= ended - gone < grace + 2.0, (transport, gone, ended)

    await asyncio.gather(one("quic"), one("tcp"))
    assert (COUNTERS.started - began, COUNTERS.running) == (2, 0)


async def black(
    server: Server, ways: BothWays, transport: Transport, ca: Path
) -> tuple[float, float]:
    """When the server let go of its listener, at the earliest, and when the source had ended."""
    loop, host = asyncio.get_running_loop(), server.host
    # The source waits for its listener: nothing but the grace ends it.
    url = f"https://localhost:{ways.port}/v1/speak?source=counting&lead=max"
    async with open_stream(
        url, transport=transport, trust=Trust(cafile=ca), resume=None, watch=None
    ) as stream:
        for _ in range(50):
            await anext(stream)
        ways.udp.black()
        ways.tcp_black = True
        reading = asyncio.create_task(read_on(stream))
        began, there, gone, ended = loop.time(), 0.0, 0.0, 0.0
        async with asyncio.timeout(10):
            while not ended:
                await asyncio.sleep(0.01)
                now = loop.time() - began
                if host.listeners:
                    there = now
                elif not gone:
                    gone = there
                    assert (host.producers, len(host)) == (1, 1)
                elif not host.producers:
                    ended = now
        assert (host.listeners, len(host), host.held) == (0, 0, 0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    return gone, ended


async def read_on(stream: AsyncIterator[object]) -> None:
    with suppress(StreamCut):
        async for _ in stream:
            pass
