"""What a producer makes of sources that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest

from tenuto.errors import ErrorCode, SourceError
from tenuto.host import SessionHost
from tenuto.host.host import CLOSING
from tenuto.host.producer import MAX_HELD
from tenuto.media import AudioFormat
from tenuto.session import Session
from tenuto.sources.base import Mark
from tenuto.telemetry.events import Event, PeerFaulted, SourceStuck

Script = Callable[[], AsyncGenerator[bytes | Mark | AudioFormat, None]]
STEREO = AudioFormat(48000, 2)


class Scripted:
    """A source that does what a test says."""

    kind = "scripted"
    format = AudioFormat()

    def __init__(
        self, script: Script, *, patience: float | None = None, pausable: bool = True
    ) -> None:
        self.stream = script
        self.patience = patience
        self.pausable = pausable


async def until(condition: Callable[[], bool], seconds: float = 3.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # nobody tells a test
            await asyncio.sleep(0.01)


def take_all(host: SessionHost, session: Session) -> list[tuple[int, int]]:
    """Sequence and samples of every frame there is."""
    cursor = host.attach(session, "a", lead=None)
    frames = host.take(session, cursor, 1000)
    host.confirm(session, cursor, cursor.next)
    return [(frame.sequence, frame.samples) for frame in frames]


async def test_what_a_source_gave_before_it_raised_is_delivered_to_the_sample() -> None:
    async def broken() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        yield bytes(1000)
        raise SourceError("no more credits")

    host = SessionHost()
    session = host.open(Scripted(broken))
    await until(lambda: session.failure is not None)
    assert take_all(host, session) == [(0, 320), (1, 180)]
    assert not session.finished
    await host.close()


async def test_a_source_that_gives_nothing_fails_when_its_patience_ends() -> None:
    finished = []

    async def silent() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        try:
            yield bytes(640)
            await asyncio.Event().wait()
        finally:
            finished.append(True)

    host = SessionHost()
    session = host.open(Scripted(silent, patience=0.05))
    await until(lambda: session.failure is not None)
    assert session.failure is not None
    assert session.failure.code is ErrorCode.SOURCE_FAILED
    assert "scripted source gave nothing for 0.05 s" in str(session.failure)
    assert finished == [True]
    assert take_all(host, session) == [(0, 320)]
    await host.close()


async def test_patience_is_not_spent_while_the_session_is_full() -> None:
    async def steady() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        while True:
            yield bytes(640)

    host = SessionHost()
    session = host.open(Scripted(steady, patience=0.05))
    await asyncio.sleep(0.2)
    assert session.end == 20
    assert session.failure is None
    await host.close()


async def test_ten_minutes_at_once_are_held_and_counted() -> None:
    size = 10 * 60 * 32000

    async def eager() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        yield bytes(size)

    host = SessionHost()
    session = host.open(Scripted(eager))
    await until(lambda: session.end == 20)
    assert session.end == 20
    assert host.held - session.footprint == size - 20 * 640
    cursor = host.attach(session, "a", lead=None)
    host.serve(session, cursor, Taker(host, session))
    count = 0
    async with asyncio.timeout(20):
        while not session.complete(cursor):
            count += len(host.take(session, cursor, 100))
            host.confirm(session, cursor, cursor.next)
            await asyncio.sleep(0)
    assert count == 30000
    assert session.samples == size // 2
    assert host.held == session.footprint
    await host.close()


class Taker:
    def __init__(self, host: SessionHost, session: Session) -> None:
        pass

    def wake(self) -> None:
        pass

    def stop(self, reason: Exception) -> None:
        raise AssertionError(reason)


async def test_more_at_once_than_can_be_held_is_refused_and_named() -> None:
    async def absurd() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        yield bytes(640)
        yield bytes(MAX_HELD + 1)

    host = SessionHost()
    session = host.open(Scripted(absurd))
    await until(lambda: session.failure is not None)
    assert f"{MAX_HELD + 1} bytes at once" in str(session.failure)
    assert session.end == 1
    await host.close()


@pytest.mark.parametrize("item", [b"", Mark(3)])
async def test_a_source_that_yields_nothing_for_ever_leaves_the_loop_to_others(
    item: bytes | Mark,
) -> None:
    async def busy() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        while True:
            yield item

    host = SessionHost()
    host.open(Scripted(busy))
    other = host.open(Scripted(ticking))
    await until(lambda: other.end >= 3)
    await host.close()


async def ticking() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
    while True:
        await asyncio.sleep(0.01)
        yield bytes(640)


async def test_a_live_source_that_never_waits_leaves_the_loop_to_others() -> None:
    async def flood() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        while True:
            yield bytes(64000)

    host = SessionHost()
    session = host.open(Scripted(flood, pausable=False))
    other = host.open(Scripted(ticking))
    await until(lambda: other.end >= 3)
    assert session.live
    assert session.footprint == 640 * 640
    await host.close()


@pytest.mark.parametrize("item", ["text", None, 5, [b"ab"]])
async def test_what_is_no_audio_fails_the_session_and_is_named(item: object) -> None:
    async def odd() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        yield bytes(640)
        yield item  # type: ignore[misc]
        yield bytes(640)

    host = SessionHost()
    session = host.open(Scripted(odd))
    await until(lambda: session.done)
    if item is None:
        assert session.finished
    else:
        assert f"yielded {type(item).__name__}" in str(session.failure)
    assert session.end >= 1
    await host.close()


async def test_any_buffer_is_taken_as_it_was_when_it_was_yielded() -> None:
    async def reusing() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        buffer = bytearray(b"\x01" * 640)
        yield buffer  # type: ignore[misc]
        buffer[:] = b"\x02" * 640
        yield memoryview(buffer)  # type: ignore[misc]

    host = SessionHost()
    session = host.open(Scripted(reusing))
    await until(lambda: session.finished)
    cursor = host.attach(session, "a", lead=None)
    frames = host.take(session, cursor, 10)
    assert [frame.payload for frame in frames] == [b"\x01" * 640, b"\x02" * 640]
    await host.close()


async def test_a_new_format_ends_the_frame_and_begins_another() -> None:
    async def changing() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        yield bytes(640 + 101)
        yield AudioFormat()
        yield bytes(1)
        yield STEREO
        yield bytes(STEREO.frame_size)

    host = SessionHost()
    session = host.open(Scripted(changing))
    await until(lambda: session.finished)
    assert take_all(host, session) == [(0, 320), (1, 51), (2, 960)]
    assert [session.format_at(n).audio for n in range(3)] == [AudioFormat()] * 2 + [STEREO]
    assert session.samples == 320 + 51 + 960
    await host.close()


async def test_a_format_that_the_servers_memory_cannot_hold_fails_the_session() -> None:
    gate = asyncio.Event()

    async def growing() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        yield bytes(640)
        await gate.wait()
        yield STEREO
        yield bytes(STEREO.frame_size)

    host = SessionHost(max_held=1_000_000)
    session = host.open(Scripted(growing))
    cursor = host.attach(session, "a")
    await until(lambda: session.end == 1)
    gate.set()
    await until(lambda: session.failure is not None)
    assert session.failure is not None
    assert session.failure.code is ErrorCode.AT_CAPACITY
    assert len(host.take(session, cursor, 10)) == 1
    await host.close()


async def test_a_finally_that_raises_is_a_fault_and_costs_no_audio() -> None:
    async def messy() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        try:
            yield bytes(650)
        finally:
            raise RuntimeError("cannot close the engine")

    events: list[Event] = []
    host = SessionHost(on_event=events.append)
    session = host.open(Scripted(messy))
    await until(lambda: session.failure is not None)
    assert take_all(host, session) == [(0, 320), (1, 5)]
    assert [type(event) for event in events if isinstance(event, PeerFaulted)] == [PeerFaulted]
    await host.close()


async def test_a_source_that_will_not_end_is_named_and_left_behind() -> None:
    released = asyncio.Event()

    async def stubborn() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        yield bytes(640)
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    events: list[Event] = []
    host = SessionHost(on_event=events.append)
    session = host.open(Scripted(stubborn))
    await until(lambda: session.end == 1)
    began = asyncio.get_running_loop().time()
    await host.close()
    assert asyncio.get_running_loop().time() - began < CLOSING + 1
    assert [event for event in events if isinstance(event, SourceStuck)] == [
        SourceStuck(session.id, "scripted", CLOSING)
    ]
    released.set()


async def test_listeners_of_a_live_session_are_counted_what_they_missed() -> None:
    async def flood() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        for _ in range(2000):
            yield bytes(640)

    host = SessionHost()
    session = host.open(Scripted(flood, pausable=False))
    cursor = host.attach(session, "a", lead=0.2)
    await until(lambda: session.finished)
    assert host.take(session, cursor, 10)[0].sequence == 1990
    assert host.tally.frames_dropped == 1990 == session.dropped
    await host.close()
