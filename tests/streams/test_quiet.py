"""Streams whose source thinks for longer than anything in between waits, scaled down."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import pairwise, takewhile
from pathlib import Path

import pytest

import quicserver.app
from fallback import TcpLimits
from tenuto.media import Frame
from tenuto.wire import End, Keepalive, RecordDecoder
from tests.conftest import StartServer
from tests.fallback.test_door import Raw, chunks, get
from tests.support.fetch import DOORS, fetch_soon

KEEP_ALIVE = 1.0
RECORDS = ("Accept: application/vnd.tenuto.records",)
QUIET = "/v1/speak?source=counting&frames=30&run=6400&first_delay=1.6&delay=1.6"
"""Half as long again as an idle connection is kept, before the first byte and twice after."""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = partial(TcpLimits, keep_alive=KEEP_ALIVE)
    monkeypatch.setattr(quicserver.app, "TcpLimits", limits)


@pytest.mark.parametrize("door", DOORS)
async def test_a_quiet_stream_outlives_every_pause_and_shows_that_it_lives(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    fetch = partial(fetch_soon, door, server.port, QUIET, ca=ca_file)
    plainly = ("Accept: audio/wav",)
    answer, plain = await asyncio.gather(fetch(headers=RECORDS), fetch(headers=plainly))
    assert (answer.result, plain.result, len(plain.body)) == (0, 0, 44 + 30 * 640)
    _, *records = RecordDecoder().feed(answer.body)
    before = list(takewhile(lambda record: not isinstance(record, Frame), records))
    assert set(before) == {Keepalive()}
    # One in 200 ms, on a machine that has other things to do too.
    assert len(before) >= 5
    heard = [at for at, record in enumerate(records) if isinstance(record, Frame)]
    assert len(heard) == 30
    pauses = [late - early > 4 for early, late in pairwise(heard)]
    assert pauses.count(True) == 2
    assert records[-1] == End(30, 30 * 320)


@pytest.mark.parametrize(("idle", "kept"), [(0.8, True), (1.4, False)])
async def test_an_idle_connection_is_used_again_or_ended_in_order(
    idle: float, kept: bool, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    raw = await Raw.open(server.port, ca_file)
    request = get("/v1/speak?source=counting&frames=3&lead=max")
    raw.writer.write(request.encode())
    first = await asyncio.wait_for(raw.reader.readuntil(b"\r\n0\r\n\r\n"), 5)
    await asyncio.sleep(idle)
    second = await raw.ask(request) if kept else await raw.reader.read()
    raw.close()
    assert len(b"".join(chunks(first))) == 44 + 3 * 640
    assert len(b"".join(chunks(second))) == (44 + 3 * 640 if kept else 0)
