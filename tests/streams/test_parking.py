"""A paused stream lets go of its connection, and its listeners are told what goes on."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import tenuto.client.driver
from tenuto.client import (
    Interrupted,
    Moved,
    NoticeReceived,
    Parked,
    Rebound,
    Restarted,
    Stream,
    Suspected,
    Transport,
    Trust,
    Unparked,
    WatchPolicy,
    open_stream,
    session_url,
)
from tenuto.client.udp import UdpSocket
from tenuto.errors import ErrorCode, RequestError
from tenuto.media import Frame
from tenuto.sources import read_index
from tests.conftest import StartServer
from tests.support.bothways import both_ways

SOON = WatchPolicy(suspect=0.25, switch=0.5, park_after=0.3)
QUERY = "source=counting&frames=100&lead=0.3"


@pytest.fixture(params=["quic", "tcp"])
def transport(request: pytest.FixtureRequest) -> Transport:
    chosen: Transport = request.param
    return chosen


@asynccontextmanager
async def listening(url: str, ca: Path, transport: Transport, **more: Any) -> AsyncIterator[Stream]:
    async with open_stream(
        url, transport=transport, trust=Trust(cafile=ca), watch=SOON, **more
    ) as stream:
        yield stream


def speak(port: int) -> str:
    return f"https://localhost:{port}/v1/speak?{QUERY}"


def of(stream: Stream, kind: type) -> list[Any]:
    return [event for event in stream.events if isinstance(event, kind)]


def whole(frames: list[Frame], count: int = 100) -> None:
    assert [read_index(frame.payload) for frame in frames] == list(range(count))


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not met():
            await asyncio.sleep(0.01)


async def test_a_pause_parks_the_stream_and_it_goes_on_at_the_frame(
    start_server: StartServer, ca_file: Path, transport: Transport
) -> None:
    server = await start_server()
    async with (
        both_ways(server.port) as ways,
        listening(speak(ways.port), ca_file, transport) as stream,
    ):
        got = [await anext(stream) for _ in range(20)]
        reading = asyncio.create_task(read(stream, got))
        answer = await stream.pause()
        assert 1799 < answer["expires_in"] <= 1800
        await until(lambda: stream.parked)
        await until(lambda: server.host.listeners == 0)
        quiet = ways.udp.taken
        await asyncio.sleep(1.2)
        # Nothing is sent any more: no heartbeat, no retry.
        assert ways.udp.taken - quiet <= 2
        assert server.host.listeners == 0
        (parked,) = of(stream, Parked)
        assert 1790 < parked.expires_in <= 1800
        await stream.resume()
        await reading
        (unparked,) = of(stream, Unparked)
        assert unparked.transport == transport
        assert not of(stream, Interrupted) + of(stream, Moved) + of(stream, Suspected)
    whole(got)
    assert stream.gaps == 0


async def read(stream: Stream, got: list[Frame]) -> None:
    got.extend([frame async for frame in stream])


async def test_a_short_pause_keeps_the_connection(
    start_server: StartServer, ca_file: Path, transport: Transport
) -> None:
    server = await start_server()
    async with listening(speak(server.port), ca_file, transport) as stream:
        got = [await anext(stream) for _ in range(20)]
        for _ in range(3):
            await stream.pause()
            await asyncio.sleep(0.15)
            await stream.resume()
        await read(stream, got)
        assert not of(stream, Parked) + of(stream, Interrupted) + of(stream, Moved)
        assert server.host.tally.listeners_attached == 1
    whole(got)


async def test_nobody_there_at_the_end_of_a_pause_is_an_error_and_no_end(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    async with (
        both_ways(server.port) as ways,
        listening(speak(ways.port), ca_file, "quic") as stream,
    ):
        got = [await anext(stream) for _ in range(20)]
        await stream.pause()
        await until(lambda: stream.parked)
        ways.udp.black()
        resuming = asyncio.create_task(stream.resume())
        await asyncio.sleep(0.1)
        resuming.cancel()
        await asyncio.wait([resuming])
        assert stream.parked
        ways.udp.restore()
        await stream.resume()
        await read(stream, got)
    whole(got)


async def test_a_session_that_expired_meanwhile_says_so(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    async with listening(speak(server.port), ca_file, "tcp") as stream:
        await anext(stream)
        await stream.pause()
        await until(lambda: stream.parked)
        server.host.expire(server.host.find(str(stream.session)))
        with pytest.raises(RequestError) as caught:
            await stream.resume()
        assert caught.value.code is ErrorCode.EXPIRED_SESSION
        assert stream.parked


async def test_a_server_that_was_started_anew_meanwhile_speaks_on(
    start_server: StartServer, ca_file: Path, transport: Transport
) -> None:
    first = await start_server()
    async with listening(speak(first.port), ca_file, transport) as stream:
        got = [await anext(stream) for _ in range(20)]
        reading = asyncio.create_task(read(stream, got))
        await stream.pause()
        await until(lambda: stream.parked)
        session = stream.session
        await first.stop()
        await start_server(port=first.port)
        await stream.resume()
        await reading
        (restarted,) = of(stream, Restarted)
        assert restarted.session == stream.session != session
        assert not of(stream, Interrupted) + of(stream, Moved) + of(stream, Suspected)
    whole(got)
    assert stream.gaps == 0


async def test_a_parked_stream_can_be_closed(start_server: StartServer, ca_file: Path) -> None:
    server = await start_server()
    async with listening(speak(server.port), ca_file, "quic") as stream:
        await anext(stream)
        await stream.pause()
        waiting = asyncio.create_task(read(stream, []))
        await until(lambda: stream.parked)
        waiting.cancel()
        await asyncio.wait([waiting])


async def test_listeners_are_told_of_a_pause_by_somebody_else(
    start_server: StartServer, ca_file: Path, transport: Transport
) -> None:
    server = await start_server()
    async with listening(speak(server.port), ca_file, transport) as first:
        got = [await anext(first) for _ in range(20)]
        url = session_url(f"https://localhost:{server.port}", str(first.session))
        reading = asyncio.create_task(read(first, got))
        async with listening(url, ca_file, transport, lead=0.3) as second:
            heard = [await anext(second) for _ in range(10)]
            await first.pause()
            hearing = asyncio.create_task(read(second, heard))
            await until(lambda: bool(of(second, NoticeReceived)))
            async with listening(url, ca_file, transport, lead=0.3) as third:
                listening_too = asyncio.create_task(read(third, []))
                # Longer than any silence that would be trouble.
                await asyncio.sleep(0.9)
                (told,) = of(third, NoticeReceived)
                assert told.code == "paused"
                assert 1790 < told.fields["expires_in"] <= 1800
                await first.resume()
                await until(lambda: len(of(third, NoticeReceived)) == 2)
                listening_too.cancel()
                await asyncio.wait([listening_too])
            await hearing
            assert [each.code for each in of(second, NoticeReceived)] == ["paused", "resumed"]
            assert not of(second, Suspected) + of(second, Moved) + of(second, Parked)
        await reading
    whole(got)
    whole(heard)


async def test_the_end_of_a_pause_may_meet_its_parking(
    start_server: StartServer, ca_file: Path, transport: Transport
) -> None:
    server = await start_server()
    async with listening(speak(server.port), ca_file, transport) as stream:
        got: list[Frame] = []
        reading = asyncio.create_task(read(stream, got))
        for wait in (0.29, 0.298, 0.3, 0.302, 0.31):
            await stream.pause()
            await asyncio.sleep(wait)
            await stream.resume()
        await reading
        assert not of(stream, Interrupted) + of(stream, Moved) + of(stream, Suspected)
    whole(got)


async def test_a_command_to_a_parked_stream_finds_the_server(
    start_server: StartServer, ca_file: Path, transport: Transport
) -> None:
    server = await start_server()
    async with listening(speak(server.port), ca_file, transport) as stream:
        got = [await anext(stream) for _ in range(20)]
        await stream.pause()
        await until(lambda: stream.parked)
        await stream.pause()
        await until(lambda: stream.parked)  # Again, and paused still.
        await stream.flush({"source": "counting", "frames": 30})
        await stream.resume()
        got = [frame async for frame in stream if frame.sequence > got[-1].sequence]
        assert not of(stream, Interrupted) + of(stream, Moved) + of(stream, Suspected)
        assert stream.epoch == 1
    assert [read_index(frame.payload) for frame in got[-30:]] == list(range(30))


async def test_a_pause_that_somebody_else_ends_is_not_parked(
    start_server: StartServer, ca_file: Path, transport: Transport
) -> None:
    server = await start_server()
    async with listening(speak(server.port), ca_file, transport) as stream:
        got = [await anext(stream) for _ in range(10)]
        reading = asyncio.create_task(read(stream, got))
        at = session_url(f"https://localhost:{server.port}", str(stream.session))
        async with listening(at, ca_file, transport, lead=0.3) as other:
            await stream.pause()
            await until(lambda: bool(of(stream, NoticeReceived)))
            await other.resume()
            hearing = asyncio.create_task(read(other, []))
            await reading
            await hearing
        assert not of(stream, Parked) + of(stream, Interrupted) + of(stream, Suspected)
    whole(got)


# The network changes


async def test_ten_changes_at_once_are_one(start_server: StartServer, ca_file: Path) -> None:
    server = await start_server()
    async with listening(speak(server.port), ca_file, "tcp") as stream:
        got = [await anext(stream) for _ in range(20)]
        for _ in range(10):
            stream.rebind()
        await stream.move("tcp")
        await read(stream, got)
        assert [moved.reason for moved in of(stream, Moved)] == ["asked"]
    whole(got)


async def test_a_change_during_a_pause_is_followed(
    start_server: StartServer, ca_file: Path
) -> None:
    """A middlebox knows the old port no more."""
    server = await start_server()
    async with (
        both_ways(server.port) as ways,
        listening(speak(ways.port), ca_file, "quic") as stream,
    ):
        got = [await anext(stream) for _ in range(20)]
        await stream.pause()
        ways.udp.forget()
        stream.rebind()
        await stream.resume()
        await read(stream, got)
        assert not of(stream, Parked) + of(stream, Moved)
    whole(got)


async def test_a_network_without_the_peers_family_is_gone_around(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No socket is to be had for the address that it plays from: the race has others."""
    server = await start_server()
    left = [OSError(errno.ENETUNREACH, "Network is unreachable")]

    def once(*given: Any) -> UdpSocket:
        if left:
            raise left.pop()
        return UdpSocket(*given)

    async with listening(speak(server.port), ca_file, "quic") as stream:
        got = [await anext(stream) for _ in range(20)]
        monkeypatch.setattr(tenuto.client.driver, "UdpSocket", once)
        stream.rebind()
        await read(stream, got)
        assert [moved.reason for moved in of(stream, Moved)] == ["network change"]
        assert not of(stream, Interrupted) + of(stream, Suspected) + of(stream, Rebound)
    whole(got)


async def test_rebinding_goes_on_without_a_word_lost(
    start_server: StartServer, ca_file: Path, transport: Transport
) -> None:
    server = await start_server()
    async with listening(speak(server.port), ca_file, transport) as stream:
        got = [await anext(stream) for _ in range(20)]
        reading = asyncio.create_task(read(stream, got))
        for _ in range(3):
            stream.rebind()
            stream.rebind()  # While one is on its way this is nothing new.
            await asyncio.sleep(0.2)
        await reading
        moved = of(stream, Moved)
        assert len(moved) + len(of(stream, Rebound)) in (3, 6)
        assert {each.reason for each in moved} <= {"network change"}
        assert not of(stream, Interrupted)
    whole(got)
