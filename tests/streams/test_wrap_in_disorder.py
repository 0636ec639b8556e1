"""Datagrams are lost and overtake each other while the sequence passes 65,535: nothing shows."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tenuto.client import GapSeen, Trust, open_stream
from tenuto.sources.counting import numbered_run
from tests.conftest import StartServer
from tests.support.shuffling import ShufflingRelay

FRAMES = 140


async def test_loss_and_disorder_about_the_wrap_change_no_byte(
    start_server: StartServer, ca_file: Path
) -> None:
    start = 65_536 - FRAMES // 2
    server = await start_server(first_sequence=start)
    relay = ShufflingRelay(server.port, loss=0.05, spread=0.02, seed=65_536)
    try:
        async with (
            asyncio.timeout(10),
            open_stream(
                f"https://localhost:{relay.port}/v1/speak?source=counting&frames={FRAMES}",
                transport="quic",
                lead="max",
                trust=Trust(cafile=ca_file),
                watch=None,
            ) as stream,
        ):
            frames = [frame async for frame in stream]
    finally:
        relay.close()
    assert [frame.sequence for frame in frames] == list(range(start, start + FRAMES))
    heard = b"".join(frame.payload for frame in frames)
    assert heard == numbered_run(0, FRAMES * 640, 640)
    assert stream.gaps == 0
    assert not [event for event in stream.events if isinstance(event, GapSeen)]
    # The path was what it should have been.
    assert relay.lost >= 3
    assert relay.overtaken >= 20
