"""Two ends that give up an idle connection after different times: neither does while both live."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from quicserver.app import Server
from tenuto.client import Event, Interrupted, Trust, open_stream
from tenuto.client.errors import LegError
from tenuto.client.exchange import Request
from tenuto.client.quic import QuicLeg, connect_quic
from tenuto.client.target import Address
from tenuto.sources import read_index
from tests.conftest import StartServer

SHORT, LONG = 2.0, 12.0
"""10 and 60 s, scaled. Whether a PING is due is looked at once a second, which is not."""

PAUSE = 2.4
RUN = 10
"""Frames before the source's pause, and after it."""


def query(pause: float) -> str:
    return f"/v1/speak?source=counting&frames={2 * RUN}&run={RUN * 640}&delay={pause}&lead=max"


async def ask(server: Server, ca: Path, pause: float) -> QuicLeg:
    """For sound alone: in records there would be signs of life, five a second."""
    address = Address(socket.AF_INET, ("127.0.0.1", server.port))
    leg = await connect_quic([address], "localhost", Trust(ca), deadline=5.0)
    response = await leg.request(
        Request("GET", "localhost", query(pause), (("accept", "audio/wav"),))
    )
    assert response.status == 200
    return leg


async def hear(leg: QuicLeg) -> tuple[int, float]:
    """Bytes that came, and the longest time without any."""
    loop = asyncio.get_running_loop()
    size, longest, last = 0, 0.0, loop.time()
    try:
        while size < 2 * RUN * 640 and (data := await leg.read()):
            size += len(data)
            longest = max(longest, loop.time() - last)
            last = loop.time()
    finally:
        await leg.aclose()
    return size, longest


async def test_a_source_that_pauses_beyond_the_shorter_time_cuts_nobody(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RFC 9000 section 10.1: the shorter of both counts at both ends."""
    monkeypatch.setattr("tenuto.quic.connection.KEEP_ALIVE", 0.5)
    monkeypatch.setattr("quicserver.limits.KEEP_ALIVE", 0.5)
    legs = []
    for ours, theirs in ((SHORT, LONG), (LONG, SHORT)):
        monkeypatch.setattr("tenuto.client.quic.IDLE_TIMEOUT", ours)
        server = await start_server(idle_timeout=theirs)
        legs.append(await ask(server, ca_file, PAUSE))
    async with asyncio.timeout(10):
        for size, longest in await asyncio.gather(*map(hear, legs)):
            assert size >= 2 * RUN * 640
            assert longest > PAUSE - 0.3 > SHORT


async def test_without_those_pings_only_signs_of_life_in_records_keep_it(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the test above would tell. The real 4 s between PINGs are too long for this server."""
    monkeypatch.setattr("quicserver.limits.KEEP_ALIVE", 0.35)
    server = await start_server(idle_timeout=0.7)
    leg = await ask(server, ca_file, PAUSE)
    events: list[Event] = []
    async with (
        asyncio.timeout(PAUSE - 0.3),
        open_stream(
            f"https://localhost:{server.port}{query(1.1)}",
            transport="quic",
            trust=Trust(cafile=ca_file),
            on_event=events.append,
        ) as stream,
    ):
        with pytest.raises(LegError):
            await hear(leg)
        frames = [await anext(stream) for _ in range(2 * RUN)]
    assert [read_index(frame.payload) for frame in frames] == list(range(2 * RUN))
    assert not [event for event in events if isinstance(event, Interrupted)]
