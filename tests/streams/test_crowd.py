"""A server of many listeners tells them how long all of them take to come back."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bench.cutting import cutting_relay
from tenuto.client import (
    Event,
    NoticeReceived,
    Retrying,
    Stream,
    TransportChoice,
    Trust,
    open_stream,
)
from tenuto.errors import TenutoError
from tests.conftest import StartServer
from tests.support.fetch import DOORS, fetch_soon

SPEAK = "/v1/speak?source=counting&frames=100000&lead=0.2"


def told(events: list[Event]) -> list[object]:
    crowds = [e for e in events if isinstance(e, NoticeReceived) and e.code == "crowd"]
    return [event.fields["return_within"] for event in crowds]


async def until_told(stream: Stream, events: list[Event], times: int) -> None:
    async with asyncio.timeout(5):
        async for _ in stream:
            if len(told(events)) >= times:
                return


@pytest.mark.parametrize("door", DOORS)
async def test_who_was_there_is_told_by_notice_and_who_comes_by_header(
    door: TransportChoice, start_server: StartServer, ca_file: Path
) -> None:
    """Two a second are let in, four are there: 1.5 * 4 / 2 s."""
    server = await start_server(attach_rate=2.0, attach_burst=100.0)
    url = f"https://localhost:{server.port}{SPEAK}"
    heard: list[list[Event]] = [[] for _ in range(4)]
    async with AsyncExitStack() as listening:
        streams = [
            await listening.enter_async_context(
                open_stream(url, transport=door, trust=Trust(cafile=ca_file), on_event=log.append)
            )
            for log in heard
        ]
        await until_told(streams[0], heard[0], 1)
        assert 1 <= float(str(told(heard[0])[0])) <= 3.0
        # It goes on, and is not told again although the rest have come meanwhile.
        for _ in range(20):
            await anext(streams[0])
        assert len(told(heard[0])) == 1
        await asyncio.sleep(0.2)
        late = await fetch_soon(door, server.port, SPEAK + "&frames=1", ca=ca_file)
        assert b"crowd" not in late.body
        latest: list[Event] = []
        stream = await listening.enter_async_context(
            open_stream(url, transport=door, trust=Trust(cafile=ca_file), on_event=latest.append)
        )
        for _ in range(20):
            await anext(stream)
        assert told(latest) == []  # the header said it
        assert server.host.return_within == pytest.approx(3.75)


@pytest.mark.parametrize("door", DOORS)
async def test_a_small_server_says_nothing(
    door: TransportChoice, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    url = f"https://localhost:{server.port}{SPEAK}"
    events: list[Event] = []
    async with open_stream(
        url, transport=door, trust=Trust(cafile=ca_file), on_event=events.append
    ) as stream:
        for _ in range(20):
            await anext(stream)
    assert told(events) == []


async def test_after_a_crash_they_come_spread_over_that_time(
    start_server: StartServer, ca_file: Path
) -> None:
    """All are reset in one instant, without a word: whoever was waits up to 12 s, not 4."""
    server = await start_server(attach_rate=1.0, attach_burst=100.0)
    waits: list[float] = []

    def note(event: Event) -> None:
        if isinstance(event, Retrying):
            waits.append(event.wait)

    async def cut(stream: Stream) -> None:
        with pytest.raises((TenutoError, TimeoutError)):
            async with asyncio.timeout(2):
                while True:
                    await anext(stream)

    async with AsyncExitStack() as listening:
        relay = await listening.enter_async_context(cutting_relay(server.port, 0.0))
        url = f"https://localhost:{relay.port}{SPEAK}"
        streams = [
            await listening.enter_async_context(
                open_stream(url, transport="tcp", trust=Trust(cafile=ca_file), on_event=note)
            )
            for _ in range(8)
        ]
        for stream in streams:
            await anext(stream)
        await asyncio.sleep(0.3)
        for stream in streams:
            for _ in range(10):
                await anext(stream)
        relay.reset_tcp()
        await asyncio.gather(*(cut(stream) for stream in streams))
    assert len(waits) >= 8
    assert max(waits) > 4.0
    assert max(waits) <= 12.0
