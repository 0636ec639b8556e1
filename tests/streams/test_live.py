"""Live audio goes out as it comes, over either door: nothing waits for a tick or for company."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import pytest

from tenuto.client import Transport, Trust, open_stream
from tenuto.sources import read_clock
from tests.conftest import StartServer
from tests.support.fetch import DOORS


@pytest.mark.parametrize("lead", [None, 0.1])
@pytest.mark.parametrize("door", DOORS)
async def test_a_live_frame_is_there_when_it_was_made(
    door: Transport, lead: float | None, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    url = f"https://localhost:{server.port}/v1/speak?source=clock&frames=60&chunk=1"
    numbers, delays = [], []
    async with open_stream(url, transport=door, lead=lead, trust=Trust(cafile=ca_file)) as stream:
        async for frame in stream:
            number, due = read_clock(frame.payload)
            numbers.append(number)
            delays.append((time.monotonic_ns() - due) * 1e-9)
    assert numbers == list(range(60))
    # One that waited for the next tick, or for another frame, would be most of 20 ms late.
    assert median(delays) < 0.01, delays
