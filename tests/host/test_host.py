"""The registry and its producers: bounds, expiry, pausing, faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from itertools import pairwise

import pytest

from tenuto.errors import ErrorCode, RequestError, SourceError
from tenuto.host import SessionHost
from tenuto.host.tombstones import MAX_TOMBSTONES
from tenuto.media import AudioFormat
from tenuto.session import SessionLimits, State
from tenuto.sources import CountingSource
from tenuto.sources.base import Mark
from tenuto.telemetry.events import Event, PeerFaulted, SessionClosed, SessionOpened

Script = Callable[[], AsyncGenerator[bytes | Mark | AudioFormat, None]]


class Woken:
    """A reader that only counts."""

    def __init__(self) -> None:
        self.times = 0
        self.reasons: list[Exception] = []

    def wake(self) -> None:
        self.times += 1

    def stop(self, reason: Exception) -> None:
        self.reasons.append(reason)


class Scripted:
    """A source that does what a test says."""

    kind = "scripted"
    format = AudioFormat()
    pausable = True
    patience: float | None = None

    def __init__(
        self, script: Callable[[], AsyncGenerator[bytes | Mark | AudioFormat, None]]
    ) -> None:
        self.stream = script


async def until(condition: Callable[[], bool], seconds: float = 3.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # nobody tells a test
            await asyncio.sleep(0.01)


async def test_production_stops_at_the_high_mark_until_somebody_takes() -> None:
    host = SessionHost()
    session = host.open(CountingSource(frames=1000))
    await until(lambda: session.end == 20)
    await asyncio.sleep(0.05)
    assert session.end == 20
    cursor = host.attach(session, "a", lead=None)
    host.serve(session, cursor, Woken())
    assert len(host.take(session, cursor, 15)) == 15
    host.confirm(session, cursor, 15)
    await until(lambda: session.end == 35)
    host.detach(session, cursor)
    await asyncio.sleep(0.1)
    assert session.end == 35
    assert session.state is State.IDLE
    await host.close()


async def test_a_first_frame_wakes_its_listener_before_any_tick() -> None:
    host = SessionHost()
    host.tick.start = lambda: None  # type: ignore[method-assign]
    session = host.open(CountingSource(frames=5, first_delay=0.05))
    cursor = host.attach(session, "a")
    reader = Woken()
    host.serve(session, cursor, reader)
    await until(lambda: reader.times > 0)
    assert session.end > 0
    await host.close()


async def test_a_session_that_nobody_attaches_to_expires_and_frees_its_source() -> None:
    events: list[Event] = []
    source = CountingSource(frames=1000)
    host = SessionHost(limits=SessionLimits(unattached=0.2), on_event=events.append)
    session = host.open(source)
    await until(lambda: len(host) == 0)
    await until(lambda: source.finished)
    assert session.state is State.EXPIRED
    assert [type(event) for event in events] == [SessionOpened, SessionClosed]
    with pytest.raises(RequestError) as caught:
        host.find(session.id)
    assert caught.value.code is ErrorCode.EXPIRED_SESSION
    assert caught.value.detail["last"] == session.end - 1
    with pytest.raises(RequestError) as caught:
        host.find("0" * 32)
    assert caught.value.code is ErrorCode.UNKNOWN_SESSION
    await host.close()


async def test_a_listener_is_told_when_its_session_ends() -> None:
    host = SessionHost()
    session = host.open(CountingSource(frames=1000))
    cursor = host.attach(session, "a")
    reader = Woken()
    host.serve(session, cursor, reader)
    before = reader.times
    host.expire(session)
    assert reader.times > before
    assert cursor.departure is not None
    await host.close()


async def test_at_capacity_idle_sessions_make_room_and_busy_ones_do_not() -> None:
    host = SessionHost(max_sessions=3)
    busy = [host.open(CountingSource(frames=10)) for _ in range(2)]
    for session in busy:
        host.serve(session, host.attach(session, "a"), Woken())
    idle = host.open(CountingSource(frames=10))
    cursor = host.attach(idle, "b")
    host.detach(idle, cursor)
    newest = host.open(CountingSource(frames=10))
    assert len(host) == 3
    assert host.tally.sessions_evicted == 1
    assert idle.state is State.EXPIRED
    with pytest.raises(RequestError) as caught:
        host.open(CountingSource(frames=10))
    assert caught.value.code is ErrorCode.AT_CAPACITY
    assert caught.value.detail["retry_after"] == 5
    assert host.tally.sessions_refused == 1
    assert newest.state is State.NEW
    await host.close()


async def test_memory_for_audio_is_reserved_and_idle_sessions_give_it_back() -> None:
    one = CountingSource(frames=1000)
    room = 640 * one.format.frame_size
    host = SessionHost(max_held=3 * room)
    sessions = [host.open(CountingSource(frames=1000)) for _ in range(3)]
    assert host.held == 3 * room
    with pytest.raises(RequestError) as caught:
        host.open(CountingSource(frames=1000))
    assert caught.value.code is ErrorCode.AT_CAPACITY
    assert "MiB" in caught.value.message
    # A larger lead needs a larger window, which is not there either.
    with pytest.raises(RequestError):
        host.attach(sessions[0], "a", lead=30.0)
    assert host.listeners == 0
    host.detach(sessions[2], host.attach(sessions[2], "b"))
    cursor = host.attach(sessions[0], "a", lead=5.0)
    assert sessions[2].state is State.EXPIRED
    assert cursor.lead == 5.0
    assert host.held <= 3 * room
    # An idle session that is taken up again is not given up for itself.
    host.detach(sessions[0], cursor)
    with pytest.raises(RequestError):
        host.attach(sessions[0], "a", lead=30.0)
    assert sessions[0].state is State.IDLE
    await host.close()
    assert host.held == 0


async def test_a_tombstone_tells_what_was_closed_from_what_has_expired() -> None:
    host = SessionHost()
    session = host.open(CountingSource(frames=0))
    host.expire(session)
    with pytest.raises(RequestError, match="was closed") as caught:
        host.find(session.id)
    assert caught.value.code is ErrorCode.EXPIRED_SESSION
    assert caught.value.detail["closed"] is True
    await host.close()


async def test_tombstones_are_bounded() -> None:
    host = SessionHost(max_sessions=2)
    ids = []
    for _ in range(MAX_TOMBSTONES + 10):
        session = host.open(CountingSource(frames=0))
        ids.append(session.id)
        host.expire(session)
    assert len(host._tombstones) == MAX_TOMBSTONES
    with pytest.raises(RequestError) as caught:
        host.find(ids[0])
    assert caught.value.code is ErrorCode.UNKNOWN_SESSION
    await host.close()


async def test_a_source_that_raises_fails_its_session_and_is_told_once() -> None:
    async def broken() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        yield bytes(1000)
        raise ZeroDivisionError("a model's own business")

    events: list[Event] = []
    host = SessionHost(on_event=events.append)
    session = host.open(Scripted(broken))
    await until(lambda: session.failure is not None)
    assert session.end == 2
    assert session.failure is not None
    assert session.failure.code is ErrorCode.SOURCE_FAILED
    assert "ZeroDivisionError" not in str(session.failure)
    faults = [event for event in events if isinstance(event, PeerFaulted)]
    assert len(faults) == 1
    assert "a model's own business" in faults[0].fault
    assert "test_host.py" in faults[0].place
    assert host.tally.sources_failed == 1
    await host.close()


async def test_a_source_error_is_passed_on_as_it_is() -> None:
    async def failing() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        yield bytes(640)
        raise SourceError("the engine has no more credits", remedy="buy some")

    host = SessionHost()
    session = host.open(Scripted(failing))
    await until(lambda: session.failure is not None)
    assert "credits" in str(session.failure)
    await host.close()


@pytest.mark.parametrize("size", [1, 7, 639, 641, 64 * 1024])
async def test_a_source_that_yields_at_once_is_held_back(size: int) -> None:
    yielded = 0

    async def eager() -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        nonlocal yielded
        while True:
            yielded += size
            yield bytes(size)

    host = SessionHost()
    session = host.open(Scripted(eager))
    await until(lambda: session.end == 20)
    await asyncio.sleep(0.05)
    assert session.end == 20
    assert yielded <= 21 * 640 + size
    await host.close()


async def test_close_runs_every_source_to_its_finally() -> None:
    sources = [CountingSource(first_delay=600), CountingSource(), CountingSource(block_after=3)]
    host = SessionHost()
    for source in sources:
        host.open(source)
    await asyncio.sleep(0.05)
    await host.close()
    assert all(source.finished for source in sources)
    assert len(host) == 0


async def test_the_tick_rests_while_there_are_no_sessions() -> None:
    host = SessionHost(limits=SessionLimits(unattached=0.1))
    assert host.tick._timer is None
    host.open(CountingSource(frames=1))
    assert host.tick._timer is not None
    await until(lambda: host.tick._timer is None)
    await host.close()


async def test_paused_sessions_produce_and_give_nothing() -> None:
    host = SessionHost()
    session = host.open(CountingSource(frames=1000))
    cursor = host.attach(session, "a", lead=None)
    host.serve(session, cursor, Woken())
    await until(lambda: session.end == 20)
    host.pause(session)
    assert host.take(session, cursor, 100) == []
    await asyncio.sleep(0.05)
    assert session.end == 20
    host.resume(session)
    assert len(host.take(session, cursor, 100)) == 20
    host.confirm(session, cursor, cursor.next)
    await until(lambda: session.end == 40)
    await host.close()


async def test_listeners_are_paced_by_ticks_and_not_by_the_moment_they_are_asked() -> None:
    host = SessionHost()
    session = host.open(CountingSource())
    cursor = host.attach(session, "a", lead=0.2)
    taken: dict[float, int] = {}

    class Taker(Woken):
        def wake(self) -> None:
            count = len(host.take(session, cursor, 20))
            host.confirm(session, cursor, cursor.next)
            taken[host.beat] = taken.get(host.beat, 0) + count

    host.serve(session, cursor, Taker())
    async with asyncio.timeout(5):
        while cursor.next < 50:
            await asyncio.sleep(0.003)  # the moments at which anybody may ask
            taken[host.beat] += len(host.take(session, cursor, 20))
            host.confirm(session, cursor, cursor.next)
    host.detach(session, cursor)
    await host.close()
    beats = sorted(taken)
    # However late the ticks of a busy machine came, each beat brought as many frames as had
    # become due since the last one, to the frame.
    steady = beats[3:]
    for before, after in pairwise(steady):
        assert taken[after] == round((after - before) / 0.020), taken
