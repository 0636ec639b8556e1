"""Both transports reach the server at the same moment: one is left, which is nobody's fault."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenuto.client import PathStore, Trust, open_stream
from tenuto.telemetry.events import Event, PeerFaulted
from tests.conftest import StartServer

TIMES = 40

FRAMES = 10


@pytest.mark.parametrize("first_delay", [0.255, 0.26, 0.3])
async def test_the_loser_of_a_race_is_no_fault_of_its_peer(
    first_delay: float, start_server: StartServer, ca_file: Path, events: list[Event]
) -> None:
    """TCP begins 250 ms after QUIC, and the session's first frame comes to both."""
    server = await start_server()

    async def listen() -> int:
        url = (
            f"https://localhost:{server.port}/v1/speak?source=counting&frames={FRAMES}"
            f"&first_delay={first_delay}&lead=max"
        )
        async with open_stream(url, trust=Trust(cafile=ca_file), memory=PathStore()) as stream:
            return len([frame async for frame in stream])

    heard = await asyncio.gather(*(listen() for _ in range(TIMES)))
    assert heard == [FRAMES] * TIMES
    async with asyncio.timeout(5):
        while server.host.listeners:
            await asyncio.sleep(0.01)
    assert not [event for event in events if isinstance(event, PeerFaulted)]
