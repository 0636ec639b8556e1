"""A listener comes back for its last frames: they are all written before one of them arrives."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from bench.rude import NeverReads
from tenuto.wire import RecordDecoder
from tests.conftest import StartServer
from tests.streams.test_resume import asker, create, frames
from tests.support.fetch import DOORS


@pytest.mark.parametrize("door", DOORS)
async def test_a_short_stream_ends_the_older_connection_too(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    ask = asker(door, server, ca_file)
    path = f"{await create(ask, frames=20, rate=48000, channels=2)}/audio?listener=me"
    # Without credit it gets nothing, says nothing, and would be given up after 10 s only.
    gone = NeverReads(server.port, ca_file, path, stream_window=0)
    old = asyncio.create_task(gone.run(12.0))
    async with asyncio.timeout(3):
        while not server.host.listeners:
            await asyncio.sleep(0.01)
    for _ in range(4):
        answer = await ask(f"{path}&from=17&lead=max")
        got = [frame.sequence for frame in frames(RecordDecoder().feed(answer.body))]
        assert got == [17, 18, 19]
        # Who leaves before it has acknowledged, as curl does on a busy machine, has heard nothing
        # as far as anybody can tell; then it comes back.
        with suppress(TimeoutError):
            async with asyncio.timeout(1.5):
                while server.host.listeners:
                    await asyncio.sleep(0.01)
            break
    assert server.host.listeners == 0
    assert not old.done()
    old.cancel()
    await asyncio.wait({old})
