"""Listeners over TCP that stand still: what hides below the session, and how they are told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fallback import TcpLimits
from tests.conftest import StartServer
from tests.fallback.test_door import RECORDS, Raw, get


@pytest.mark.parametrize("rate", [1500, 16000])
async def test_no_more_than_two_seconds_hide_below_the_session(
    rate: int, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    raw = await Raw.open(server.port, ca_file)
    raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
    path = f"/v1/speak?source=counting&frames=100000&rate={rate}&lead=max"
    raw.writer.write(get(path).encode())
    await asyncio.sleep(1.5)
    (entry,) = server.host._entries.values()
    (cursor,) = entry.session.cursors
    # Confirmed is what the listener's kernel has, in whole chunks of ten frames.
    assert 0 < cursor.next - cursor.confirmed <= 100 + 10
    raw.close()


async def test_a_stalled_listener_that_wakes_up_finds_a_notice_and_a_cut(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import quicserver.app

    monkeypatch.setattr(
        quicserver.app, "TcpLimits", lambda **kw: TcpLimits(**{**kw, "write_deadline": 0.6})
    )
    server = await start_server()
    raw = await Raw.open(server.port, ca_file)
    path = "/v1/speak?source=counting&frames=1000000&rate=1500&lead=max"
    raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
    raw.writer.get_extra_info("socket").setsockopt(1, 8, 2048)  # SO_RCVBUF, as small as can be
    raw.writer.write(get(path, RECORDS).encode())
    async with asyncio.timeout(20):
        while server.host.tally.frames_sent == 0 or server.host.listeners:
            await asyncio.sleep(0.05)
    raw.writer.transport.resume_reading()  # type: ignore[attr-defined]
    received = await raw.ask(b"")
    raw.close()
    assert not received.endswith(b"0\r\n\r\n")
    assert b"too-slow" in received


async def test_where_nothing_can_be_measured_streams_are_whole(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fallback.meter

    monkeypatch.setattr(fallback.meter, "measures", lambda: False)
    server = await start_server()
    raw = await Raw.open(server.port, ca_file)
    response = await raw.ask(get("/v1/speak?source=counting&frames=100&lead=max"))
    raw.close()
    assert response.endswith(b"\r\n0\r\n\r\n")
