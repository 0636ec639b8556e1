"""Listeners over TCP that stand still: what hides below the session, and how they are told."""

from __future__ import annotations

import asyncio
import fcntl
import sys
import termios
from pathlib import Path

import pytest

from fallback import TcpLimits
from quicserver.app import Server
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
    hidden, confirmed = 0.0, 0
    for _ in range(150):
        await asyncio.sleep(0.01)
        for entry in server.host._entries.values():
            hidden = max(hidden, below(server) / (rate * 2))
            confirmed = max(confirmed, *(c.next - c.confirmed for c in entry.session.cursors))
    # By what the kernel and asyncio say of themselves, and by what the session has been told.
    assert 0.5 < hidden < 2.0
    assert 0 < confirmed <= 100
    raw.close()


def below(server: Server) -> int:
    """Bytes that the only connection's transport and kernel hold, acknowledged ones left out."""
    assert server._tcp is not None
    (transport,) = server._tcp._open.values()
    assert transport is not None
    descriptor = transport.get_extra_info("socket").fileno()
    queued = fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(queued, sys.byteorder) + transport.get_write_buffer_size()


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
