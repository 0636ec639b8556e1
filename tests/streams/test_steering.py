"""Pause, resume and flush by more than one, and while the server is started anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tenuto.client import (
    NoticeReceived,
    Parked,
    Restarted,
    Stream,
    Transport,
    Trust,
    WatchPolicy,
    open_stream,
    session_url,
)
from tenuto.media import Frame
from tenuto.sources import read_index
from tests.conftest import StartServer

QUERY = "source=counting&frames=150&lead=0.3"


@pytest.fixture(params=["quic", "tcp"])
def transport(request: pytest.FixtureRequest) -> Transport:
    chosen: Transport = request.param
    return chosen


class Listening:
    """Reads a stream to its end."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.frames: list[Frame] = []
        self.ended = asyncio.create_task(self._read())

    async def had(self, count: int) -> None:
        await until(lambda: len(self.frames) >= count)

    @property
    def runs(self) -> list[tuple[int, int]]:
        """Each stretch in which neither numbers nor contents jump: first content, length."""
        runs: list[tuple[int, int]] = []
        for before, frame in zip([None, *self.frames], self.frames, strict=False):
            index = read_index(frame.payload)
            steps = None if before is None else frame.sequence - before.sequence
            if steps == 1 and index == sum(runs[-1]):
                runs[-1] = (runs[-1][0], runs[-1][1] + 1)
            else:
                runs.append((index, 1))
        return runs

    async def _read(self) -> None:
        async for frame in self.stream:
            self.frames.append(frame)


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not met():
            await asyncio.sleep(0.01)


def told(stream: Stream) -> list[str]:
    return [event.code for event in stream.events if isinstance(event, NoticeReceived)]


def counted(frames: int) -> dict[str, str | int | float]:
    return {"source": "counting", "frames": frames}


def speak(port: int) -> str:
    return f"https://localhost:{port}/v1/speak?{QUERY}"


async def test_a_pause_outlives_the_server(
    start_server: StartServer, ca_file: Path, transport: Transport
) -> None:
    """A new session would play: none is made before somebody wants to hear it."""
    first = await start_server()
    async with open_stream(
        speak(first.port), transport=transport, trust=Trust(cafile=ca_file)
    ) as stream:
        at = Listening(stream)
        await at.had(10)
        await stream.pause()
        await first.stop()
        second = await start_server(port=first.port)
        await until(lambda: stream.parked)
        had = len(at.frames)
        await asyncio.sleep(0.5)
        assert len(at.frames) == had
        assert len(second.host) == 0
        await stream.flush(counted(40))
        await asyncio.sleep(0.5)
        assert stream.paused
        assert second.host.find(str(stream.session)).state.name == "PAUSED"
        await stream.resume()
        await at.ended
    assert at.runs[-1] == (0, 40)


async def test_a_command_to_a_parked_stream_waits_for_the_server(
    start_server: StartServer, ca_file: Path, transport: Transport
) -> None:
    first = await start_server()
    async with open_stream(
        speak(first.port), transport=transport, trust=Trust(cafile=ca_file)
    ) as stream:
        at = Listening(stream)
        await at.had(10)
        await stream.pause()
        await first.stop()
        await until(lambda: stream.parked)
        resuming = asyncio.create_task(stream.resume())
        await asyncio.sleep(0.4)
        await start_server(port=first.port)
        await resuming
        await at.ended
    assert at.runs == [(0, 150)]


async def test_a_pause_that_somebody_else_ended_is_none_of_the_next_leg(
    start_server: StartServer, ca_file: Path, transport: Transport
) -> None:
    server = await start_server()
    watch = WatchPolicy(park_after=0.3)
    trust = Trust(cafile=ca_file)
    async with open_stream(
        speak(server.port), transport=transport, trust=trust, watch=watch
    ) as stream:
        at = Listening(stream)
        await at.had(10)
        url = session_url(f"https://localhost:{server.port}", str(stream.session))
        async with open_stream(url, trust=trust, lead=0.3) as other:
            hearing = Listening(other)
            await hearing.had(10)
            await stream.pause()
            await until(lambda: told(stream) == ["paused"])
            await other.resume()
            await until(lambda: told(stream) == ["paused", "resumed"])
            await stream.move("tcp" if transport == "quic" else "quic")
            await at.ended
            await hearing.ended
        assert not [event for event in stream.events if isinstance(event, Parked)]
    assert at.runs == hearing.runs == [(0, 150)]


async def test_a_flush_that_meets_a_new_server_is_done_in_the_new_session(
    start_server: StartServer, ca_file: Path, transport: Transport
) -> None:
    """The new one answers commands before the stream has come back to it."""
    first = await start_server()
    async with open_stream(
        speak(first.port), transport=transport, trust=Trust(cafile=ca_file)
    ) as stream:
        at = Listening(stream)
        await at.had(10)
        await first.stop()
        await start_server(port=first.port)
        await stream.flush(counted(40))
        await at.ended
        assert stream.gaps == 0
    assert at.runs[-1] == (0, 40)


async def test_a_new_server_says_what_was_flushed_to_last(
    start_server: StartServer, ca_file: Path, transport: Transport
) -> None:
    first = await start_server()
    async with open_stream(
        speak(first.port), transport=transport, trust=Trust(cafile=ca_file)
    ) as stream:
        at = Listening(stream)
        await at.had(10)
        await asyncio.gather(stream.flush(counted(60)), stream.flush(counted(120)))
        await until(lambda: stream.epoch == 2)
        had = len(at.frames)
        await at.had(had + 10)
        await first.stop()
        await start_server(port=first.port)
        await at.ended
        assert [event for event in stream.events if isinstance(event, Restarted)]
    assert at.runs[-1] == (0, 120)
