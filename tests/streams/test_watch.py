"""A path dies, starves or comes back in mid-word, and the listener misses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

from tenuto.client import (
    Event,
    Interrupted,
    Moved,
    Stayed,
    Stream,
    Suspected,
    TransportChoice,
    Trust,
    WatchPolicy,
    open_stream,
    opening,
)
from tenuto.client.pathstore import PathStore
from tenuto.media import Frame
from tenuto.sources import read_index
from tests.conftest import StartServer
from tests.support.bothways import BothWays, both_ways
from tests.support.relay import FailingRelay

SOON = WatchPolicy(suspect=0.25, switch=0.5, retry=0.2, interval=0.8)
"""Half of the real times, so that tests take half as long."""

E = TypeVar("E")


class Field:
    """A server behind a way that can be broken, and what the stream tells."""

    def __init__(self, ways: BothWays, trust: Trust) -> None:
        self.ways = ways
        self.events: list[tuple[float, Event]] = []
        self._trust = trust
        self._loop = asyncio.get_running_loop()

    @asynccontextmanager
    async def open(
        self,
        query: str = "source=counting&frames=200",
        transport: TransportChoice = "auto",
        watch: WatchPolicy = SOON,
    ) -> AsyncIterator[Stream]:
        async with open_stream(
            f"https://localhost:{self.ways.port}/v1/speak?{query}",
            transport=transport,
            trust=self._trust,
            watch=watch,
            on_event=lambda event: self.events.append((self._loop.time(), event)),
        ) as stream:
            yield stream

    def of(self, kind: type[E]) -> list[E]:
        return [event for _, event in self.events if isinstance(event, kind)]


@pytest.fixture
async def field(start_server: StartServer, ca_file: Path) -> AsyncIterator[Field]:
    server = await start_server()
    async with both_ways(server.port) as ways:
        yield Field(ways, Trust(cafile=ca_file))


@pytest.fixture
def cool_down(monkeypatch: pytest.MonkeyPatch) -> float:
    """Scaled: how long QUIC is left alone."""
    monkeypatch.setattr(opening, "default_store", lambda: PathStore(cool_down=1.0))
    return 1.0


def whole(frames: list[Frame], count: int) -> None:
    assert [read_index(frame.payload) for frame in frames] == list(range(count))


async def hear(stream: Stream, count: int) -> list[Frame]:
    return [await anext(stream) for _ in range(count)]


def nothing(relay: FailingRelay) -> None: ...
def up(relay: FailingRelay) -> None:
    relay.up = 1.0


def down(relay: FailingRelay) -> None:
    relay.down = 1.0


def loss(relay: FailingRelay) -> None:
    relay.up = relay.down = 0.8


def policed(relay: FailingRelay) -> None:
    """Less than half of what 16 kHz mono needs."""
    relay.rate = 15_000


@pytest.mark.parametrize("trouble", [FailingRelay.black, up, down, loss, policed])
async def test_quic_that_brings_no_audio_is_left_for_tcp(
    field: Field, trouble: Callable[[FailingRelay], None]
) -> None:
    loop = asyncio.get_running_loop()
    async with field.open("source=counting&frames=200&lead=1") as stream:
        got = await hear(stream, 80)
        assert stream.transport == "quic"
        trouble(field.ways.udp)
        began = loop.time()
        got += [frame async for frame in stream]
    whole(got, 200)
    (moved,) = field.of(Moved)
    at = next(at for at, event in field.events if isinstance(event, Moved))
    assert moved.transport == "tcp"
    assert moved.reason in ("black hole", "throttled")
    if trouble is FailingRelay.black:
        assert moved.reason == "black hole"
        # 0.52 s of silence, and the time of a connection.
        assert at - began < 0.9
    if trouble is not loss:
        assert at - began < 2.5
    assert field.of(Suspected)
    assert not field.of(Interrupted)


@pytest.mark.parametrize("trouble", [FailingRelay.black, down])
async def test_a_caller_that_keeps_its_own_time_hears_no_gap(
    field: Field, trouble: Callable[[FailingRelay], None]
) -> None:
    """One frame each 20 ms, and all that was sent ahead stays here meanwhile."""
    loop = asyncio.get_running_loop()
    got: list[Frame] = []
    async with field.open("source=counting&frames=150&lead=1") as stream:
        began, late = loop.time(), 0.0
        for number in range(150):
            if number == 30:
                trouble(field.ways.udp)
            due = began + number * 0.02
            await asyncio.sleep(max(0.0, due - loop.time()))
            got.append(await anext(stream))
            late = max(late, loop.time() - due)
        assert stream.transport == "tcp"
    whole(got, 150)
    # Noticed when it had used up what it held, this was half a second.
    assert late < 0.3


async def test_quic_that_is_back_first_is_kept(field: Field) -> None:
    async with field.open("source=counting&frames=200&lead=1") as stream:
        got = await hear(stream, 80)
        field.ways.udp.black()
        field.ways.tcp_black = True
        reading = asyncio.create_task(hear(stream, 80))
        await asyncio.sleep(0.8)
        assert field.ways.connections == 1
        field.ways.udp.restore()
        got += await reading
        field.ways.tcp_black = False
        got += [frame async for frame in stream]
        assert stream.transport == "quic"
    whole(got, 200)
    (stayed,) = field.of(Stayed)
    assert "delivers again" in stayed.reason
    assert not field.of(Moved)


async def test_a_stream_goes_back_to_quic_once_and_in_mid_sentence(
    field: Field, cool_down: float
) -> None:
    async with field.open("source=counting&frames=250&lead=0.5") as stream:
        got = await hear(stream, 40)
        field.ways.udp.black()
        while stream.transport == "quic":
            got.append(await anext(stream))
        field.ways.udp.restore()
        got += [frame async for frame in stream]
        assert stream.transport == "quic"
    whole(got, 250)
    assert [(moved.transport, moved.reason) for moved in field.of(Moved)] == [
        ("tcp", "black hole"),
        ("quic", "QUIC again"),
    ]
    there, back = (at for at, event in field.events if isinstance(event, Moved))
    assert back - there >= cool_down
    assert not field.of(Interrupted)


async def test_quic_that_is_still_dead_is_tried_less_and_less(
    field: Field, cool_down: float
) -> None:
    async with field.open("source=counting&frames=250&lead=0.5") as stream:
        got = await hear(stream, 40)
        field.ways.udp.black()
        got += [frame async for frame in stream]
        assert stream.transport == "tcp"
    whole(got, 250)
    assert [moved.transport for moved in field.of(Moved)] == ["tcp"]


@pytest.mark.parametrize("transport", ["auto", "tcp"])
async def test_tcp_that_stands_still_is_left_too(field: Field, transport: TransportChoice) -> None:
    stays = replace(SOON, interval=30.0)
    async with field.open("source=counting&frames=200&lead=1", transport, stays) as stream:
        if transport == "auto":
            await stream.move("tcp")
        got = await hear(stream, 80)
        field.ways.tcp_black = True
        reading = asyncio.create_task(hear(stream, 100))
        if transport == "tcp":
            # What is black is the old connection's path.
            await asyncio.sleep(0.55)
            field.ways.connections = 0
            field.ways.tcp_black = False
        got += await reading
        field.ways.tcp_black = False
        got += [frame async for frame in stream]
        assert transport == "tcp" or stream.transport == "quic"
    whole(got, 200)
    assert field.of(Suspected)
    assert not field.of(Interrupted)


async def test_quic_alone_goes_on_from_a_new_port(field: Field) -> None:
    """A middlebox has forgotten the old one; a new one works."""
    async with field.open("source=counting&frames=200&lead=1", "quic") as stream:
        got = await hear(stream, 80)
        field.ways.udp.forget()
        got += [frame async for frame in stream]
    whole(got, 200)
    (moved,) = field.of(Moved)
    assert (moved.transport, moved.reason) == ("quic", "black hole")


@pytest.mark.parametrize(
    ("query", "transport"),
    [
        ("source=counting&frames=40&run=12800&delay=1.5", "auto"),
        ("source=counting&frames=40&delay=0.06&run=1280", "auto"),
        ("source=counting&frames=40&delay=0.06&run=1280", "tcp"),
        ("source=counting&frames=100&lead=0.4&chunk=10", "tcp"),
        ("source=counting&frames=1000&lead=max", "auto"),
    ],
)
async def test_slow_sources_pauses_and_chunks_alarm_nobody(
    field: Field, query: str, transport: TransportChoice
) -> None:
    async with field.open(query, transport) as stream:
        got = [frame async for frame in stream]
    whole(got, len(got))
    assert not field.of(Suspected)
    assert not field.of(Moved)
    assert not field.of(Interrupted)
    assert field.ways.connections == (transport == "tcp")


async def test_a_caller_that_gives_up_its_wait_and_comes_back_misses_nothing(
    field: Field,
) -> None:
    """Cancelled at every moment of a switch."""
    random = Random(7)
    got: list[Frame] = []
    async with field.open("source=counting&frames=150&lead=0.5") as stream:
        got += await hear(stream, 40)
        field.ways.udp.black()
        while len(got) < 150:
            try:
                async with asyncio.timeout(random.uniform(0.0, 0.03)):
                    got.append(await anext(stream))
            except TimeoutError:
                pass
    whole(got, 150)
    assert [moved.transport for moved in field.of(Moved)] == ["tcp"]
    await asyncio.sleep(0.05)
    mine = asyncio.current_task()
    names = {task.get_coro().__qualname__ for task in asyncio.all_tasks() if task is not mine}  # type: ignore[union-attr]
    assert not any(name.startswith(("Flow.", "Beside.", "Resumer.")) for name in names), names


async def test_a_stream_that_is_closed_in_mid_switch_leaves_nothing(field: Field) -> None:
    async with field.open("source=counting&frames=500&lead=0.5") as stream:
        await hear(stream, 40)
        field.ways.udp.black()
        field.ways.tcp_black = True
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.2):
                await hear(stream, 400)
        assert stream.transport == "quic"
    names = [str(task.get_coro()) for task in asyncio.all_tasks()]
    assert not any("Flow." in name or "Beside." in name for name in names), names


async def test_a_hundred_switches_at_random_moments(field: Field) -> None:
    random = Random(11)
    async with field.open("source=counting&frames=400&lead=1") as stream:
        got: list[Frame] = []

        async def read() -> None:
            got.extend([frame async for frame in stream])

        reading = asyncio.create_task(read())
        moves = 0
        while not reading.done() and moves < 100:
            await stream.move("tcp" if stream.transport == "quic" else "quic")
            moves += 1
            await asyncio.sleep(random.uniform(0.0, 0.05))
        await reading
    whole(got, 400)
    assert stream.gaps == 0
