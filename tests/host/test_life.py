"""How sessions end and what they leave behind, in virtual time."""

from __future__ import annotations

import asyncio
import gc
import random
import weakref
from collections.abc import AsyncGenerator, Callable

import pytest

from tenuto.errors import ErrorCode, RequestError, SourceError
from tenuto.host import SessionHost, is_tag
from tenuto.host.nodes import Nodes
from tenuto.media import AudioFormat
from tenuto.session import Session, SessionLimits, State
from tenuto.sources import CountingSource
from tenuto.sources.base import Mark
from tests.support.virtualtime import run_in_virtual_time

Runs = AsyncGenerator[bytes | Mark | AudioFormat, None]


class Reader:
    """Takes what is due, as a door that confirms what it writes."""

    def __init__(self, host: SessionHost, session: Session, **wish: float | int | None) -> None:
        self.host, self.session = host, session
        self.cursor = host.attach(session, "a", **wish)  # type: ignore[arg-type]
        self.got: list[int] = []
        self.woken = 0
        host.serve(session, self.cursor, self)

    def wake(self) -> None:
        self.woken += 1
        frames = self.host.take(self.session, self.cursor, 100)
        self.host.confirm(self.session, self.cursor, self.cursor.next)
        self.got += [frame.sequence for frame in frames]

    def stop(self, reason: Exception) -> None:
        raise AssertionError(reason)

    def leave(self) -> None:
        self.host.detach(self.session, self.cursor)


class Told:
    """A source that counts how often its `finally` has run."""

    kind = "told"
    format = AudioFormat()
    pausable = True
    patience: float | None = None

    def __init__(self, script: Callable[[], Runs]) -> None:
        self._script = script
        self.begun = 0
        self.ended = 0

    async def stream(self) -> Runs:
        self.begun += 1
        try:
            async for run in self._script():
                yield run
        finally:
            self.ended += 1


async def ticking() -> Runs:
    while True:
        yield bytes(640)
        await asyncio.sleep(0.01)


def code(host: SessionHost, id: str) -> tuple[ErrorCode, dict[str, int | float | str]]:
    with pytest.raises(RequestError) as caught:
        host.find(id)
    return caught.value.code, caught.value.detail


def test_a_resume_about_the_deadline_is_decided_by_the_time_alone() -> None:
    async def main() -> None:
        rng = random.Random(35)
        host = SessionHost(limits=SessionLimits(retention=5.0))
        for number in range(200):
            await asyncio.sleep(rng.random() * 0.1)
            session = host.open(CountingSource(frames=1000))
            await asyncio.sleep(0.05)
            host.detach(session, host.attach(session, "a"))
            deadline = session.deadline
            late = number % 2
            await asyncio.sleep(deadline - host.now() + (0.01 if late else -0.01))
            if late:
                found, detail = code(host, session.id)
                assert (found, detail) == (ErrorCode.EXPIRED_SESSION, {"last": session.end - 1})
                with pytest.raises(RequestError, match="expired"):
                    host.attach(session, "a")
            else:
                cursor = host.attach(host.find(session.id), "a")
                assert session.state is State.PLAYING
                await asyncio.sleep(6.0)
                host.detach(session, cursor)
                host.expire(session)
            assert len(host) == 0
        await host.close()
        assert host.producers == 0

    run_in_virtual_time(main())


def test_exactly_at_its_deadline_a_session_is_over() -> None:
    async def main() -> None:
        host = SessionHost(limits=SessionLimits(unattached=5.0))
        host.tick.start = lambda: None  # type: ignore[method-assign]  # no sweep comes by
        session = host.open(CountingSource(frames=10))
        await asyncio.sleep(5.0)
        assert host.now() == session.deadline
        assert len(host) == 1
        with pytest.raises(RequestError, match="expired"):
            host.attach(session, "a")
        assert len(host) == 0
        assert code(host, session.id)[0] is ErrorCode.EXPIRED_SESSION
        await host.close()

    run_in_virtual_time(main())


def test_a_life_that_is_listened_to_outlives_every_limit_but_its_age() -> None:
    async def main() -> None:
        limits = SessionLimits(unattached=5.0, retention=5.0, paused=5.0, max_age=60.0)
        host = SessionHost(limits=limits)
        session = host.open(CountingSource())
        reader = Reader(host, session, lead=0.2)
        await asyncio.sleep(20.0)
        reader.leave()
        again = Reader(host, host.find(session.id), lead=0.2, start=reader.cursor.next)
        assert reader.got + again.got == list(range(len(reader.got)))
        host.pause(session)
        await asyncio.sleep(4.0)
        host.pause(session)
        await asyncio.sleep(4.0)
        host.resume(session)
        await asyncio.sleep(1.0)
        assert again.got
        again.leave()
        for _ in range(8):
            await asyncio.sleep(3.0)
            host.progress(session, "a", again.cursor.next)
            host.find(session.id)
        await asyncio.sleep(60.0 - 53.0 + 0.1)
        assert code(host, session.id)[0] is ErrorCode.EXPIRED_SESSION
        await host.close()

    run_in_virtual_time(main())


def test_a_pause_that_lasts_too_long_ends_the_session() -> None:
    async def main() -> None:
        host = SessionHost(limits=SessionLimits(paused=5.0))
        session = host.open(CountingSource())
        reader = Reader(host, session)
        await asyncio.sleep(1.0)
        host.pause(session)
        await asyncio.sleep(6.0)
        assert code(host, session.id)[0] is ErrorCode.EXPIRED_SESSION
        assert reader.cursor.departure is not None
        await host.close()

    run_in_virtual_time(main())


def test_a_thousand_abandoned_sessions_give_everything_back() -> None:
    async def main() -> None:
        host = SessionHost(limits=SessionLimits(retention=5.0))
        tasks = len(asyncio.all_tasks())
        sources = [CountingSource() for _ in range(1000)]
        sessions: list[weakref.ref[Session]] = []
        for source in sources:
            session = host.open(source)
            reader = Reader(host, session, lead=0.2)
            sessions.append(weakref.ref(session))
            await asyncio.sleep(0.003)
            reader.leave()
        await asyncio.sleep(0.5)
        assert host.producers == len(host) == 1000
        assert host.held > 1000 * 640 * 640
        del session, reader
        await asyncio.sleep(5.0)
        assert (len(host), host.held, host.producers, host.listeners) == (0, 0, 0, 0)
        assert all(source.finished for source in sources)
        assert len(asyncio.all_tasks()) == tasks
        gc.collect()
        assert sum(each() is not None for each in sessions) == 0
        await host.close()

    run_in_virtual_time(main())


@pytest.mark.parametrize("when", ["before it begins", "first byte", "asleep", "mid-frame", "end"])
@pytest.mark.parametrize("how", ["leaves", "closes", "flushes"])
def test_whatever_ends_it_a_source_gets_to_its_finally(when: str, how: str) -> None:
    async def slow() -> Runs:
        await asyncio.sleep(1.0)
        yield bytes(640)
        await asyncio.sleep(5.0)
        yield bytes(640 * 3 + 111)
        await asyncio.sleep(1.0)
        yield bytes(529)

    moment = {"before it begins": 0, "first byte": 0.5, "asleep": 3, "mid-frame": 6.5, "end": 7.01}

    async def main() -> None:
        host = SessionHost(limits=SessionLimits(retention=1.0))
        sources = [Told(slow) for _ in range(50)]
        tasks = len(asyncio.all_tasks())
        sessions = [host.open(source) for source in sources]
        readers = [Reader(host, session) for session in sessions]
        await asyncio.sleep(moment[when] - (0.01 if when == "end" else 0.0))
        for session, reader in zip(sessions, readers, strict=True):
            if how == "flushes":
                host.flush(session)
            elif how == "closes":
                host.expire(session)
            else:
                reader.leave()
        # Only who left is waited for; and never does a cancel wait for a listener.
        await asyncio.sleep(0.0 if how == "leaves" else 0.01)
        if how != "leaves":
            assert host.producers == 0
        await asyncio.sleep(1.3)
        assert host.producers == 0
        assert [source.ended for source in sources] == [source.begun for source in sources]
        assert len(host) == 0
        assert len(asyncio.all_tasks()) == tasks
        await host.close()

    run_in_virtual_time(main())


def test_a_flush_drops_what_was_and_speaks_the_other_thing() -> None:
    async def main() -> None:
        host = SessionHost(first_sequence=65_500)
        old, new = Told(ticking), CountingSource(frames=10)
        session = host.open(old)
        reader = Reader(host, session, lead=0.2)
        await asyncio.sleep(1.0)
        woken = reader.woken
        host.flush(session, new)
        assert reader.woken == woken + 1
        base = session.base
        assert host.producers == 2
        await asyncio.sleep(1.0)
        assert (old.begun, old.ended, host.producers) == (1, 1, 0)
        below = [number for number in reader.got if number < base]
        assert below == list(range(65_500, 65_500 + len(below)))
        assert reader.got[len(below) :] == list(range(base, base + 10))
        assert session.complete(reader.cursor)
        assert host.tally.flushes == 1
        await host.close()

    run_in_virtual_time(main())


def test_what_is_flushed_without_a_source_waits_for_one_and_not_for_ever() -> None:
    async def main() -> None:
        host = SessionHost(limits=SessionLimits(retention=5.0))
        session = host.open(Told(ticking))
        reader = Reader(host, session)
        await asyncio.sleep(1.0)
        host.flush(session)
        await asyncio.sleep(4.0)
        assert host.producers == 0
        assert session.state is State.PLAYING
        host.flush(session, CountingSource(frames=10))
        await asyncio.sleep(4.0)
        assert reader.got[-10:] == list(range(session.base, session.base + 10))
        host.flush(session)
        await asyncio.sleep(5.1)
        assert code(host, session.id)[0] is ErrorCode.EXPIRED_SESSION
        with pytest.raises(RequestError, match="expired"):
            host.flush(session)
        await host.close()

    run_in_virtual_time(main())


def test_a_live_source_is_not_cancelled_by_a_flush_but_by_another_source() -> None:
    async def main() -> None:
        host = SessionHost()
        source = Told(ticking)
        source.pausable = False
        session = host.open(source, shared="radio")
        reader = Reader(host, session, lead=0.2)
        await asyncio.sleep(10.0)
        host.flush(session)
        base = session.base
        await asyncio.sleep(1.0)
        assert host.producers == 1
        assert host.shared("radio") is session
        assert base in reader.got
        host.flush(session, CountingSource(frames=10))
        await asyncio.sleep(1.0)
        assert (source.ended, session.live) == (1, False)
        assert host.shared("radio") is None
        await host.close()

    run_in_virtual_time(main())


async def stubborn() -> Runs:
    while True:
        try:
            yield bytes(640)
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            pass  # It knows better.


async def bitter() -> Runs:
    try:
        while True:
            yield bytes(640)
            await asyncio.sleep(0.05)
    finally:
        raise SourceError("it did not want to go")


async def clumsy() -> Runs:
    try:
        yield bytes(641)
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        raise ZeroDivisionError("in its finally") from None


async def quiet() -> Runs:
    try:
        yield bytes(640)
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        return


@pytest.mark.parametrize("script", [stubborn, bitter, clumsy, quiet])
def test_a_source_that_takes_its_end_badly_says_nothing_into_the_next_epoch(
    script: Callable[[], Runs],
) -> None:
    async def main() -> None:
        host = SessionHost()
        session = host.open(Told(script))
        reader = Reader(host, session)
        await asyncio.sleep(1.02)
        host.flush(session)
        await asyncio.sleep(1.0)
        assert (session.end, session.failure, session.finished) == (session.base, None, False)
        assert host.producers == 0
        assert host.tally.sources_failed == 0
        host.flush(session, CountingSource(frames=3))
        await asyncio.sleep(0.5)
        assert reader.got[-3:] == [session.base, session.base + 1, session.base + 2]
        assert session.finished
        await host.close()

    run_in_virtual_time(main())


def test_a_flush_that_would_need_too_much_memory_changes_nothing() -> None:
    async def main() -> None:
        room = 640 * 640
        host = SessionHost(max_held=2 * room)
        session = host.open(CountingSource())
        reader = Reader(host, session)
        await asyncio.sleep(0.5)
        wide = Told(ticking)
        wide.format = AudioFormat(48_000, 2)
        with pytest.raises(RequestError) as caught:
            host.flush(session, wide)
        assert caught.value.code is ErrorCode.AT_CAPACITY
        assert (session.epoch, host.producers) == (0, 1)
        before = len(reader.got)
        await asyncio.sleep(0.5)
        assert len(reader.got) > before
        await host.close()

    run_in_virtual_time(main())


def test_an_attach_that_is_refused_takes_nobodys_room() -> None:
    async def main() -> None:
        room = 640 * 640
        host = SessionHost(max_held=2 * room)
        idle, busy = host.open(CountingSource()), host.open(CountingSource())
        host.detach(idle, host.attach(idle, "a"))
        with pytest.raises(RequestError) as caught:
            host.attach(busy, "b", lead=30.0, start=1 << 40)
        assert caught.value.code is ErrorCode.FAR_AHEAD
        assert idle.state is State.IDLE
        await host.close()

    run_in_virtual_time(main())


def test_a_listener_on_a_dead_connection_does_not_keep_a_source_at_work() -> None:
    async def main() -> None:
        host = SessionHost()
        session = host.open(CountingSource())
        cursor = host.attach(session, "a")
        for _ in range(100):
            await asyncio.sleep(0.02)
            host.take(session, cursor, 100)
        made = session.end
        assert made < 350
        await asyncio.sleep(5.0)
        assert session.end == made
        # News of it is room at once, and not only at the next tick.
        host.tick.stop()
        host.confirm(session, cursor, cursor.next, rtt=0.1)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert session.end > made
        await host.close()

    run_in_virtual_time(main())


async def spoken() -> Runs:
    for word in range(5):
        yield Mark(word * 10)
        yield bytes(640)


def test_a_tombstone_says_where_the_text_was() -> None:
    async def main() -> None:
        host = SessionHost()
        session = host.open(Told(spoken))
        await asyncio.sleep(0.1)
        host.expire(session)
        assert code(host, session.id) == (
            ErrorCode.EXPIRED_SESSION,
            {"last": 4, "closed": True, "text_offset": 40},
        )
        await host.close()

    run_in_virtual_time(main())


class TestNodes:
    def test_an_id_says_on_which_server_its_session_lives(self) -> None:
        async def main() -> None:
            host = SessionHost(node="eu1", peers={"us2": "https://us2.example:4433"})
            session = host.open(CountingSource(frames=1))
            assert session.id.startswith("eu1-")
            assert len(session.id) == 4 + 32
            assert host.find(session.id) is session
            right = {"node": "us2", "url": "https://us2.example:4433"}
            assert code(host, "us2-" + "0" * 32) == (ErrorCode.WRONG_NODE, right)
            assert code(host, "ap3-" + "0" * 32) == (ErrorCode.WRONG_NODE, {"node": "ap3"})
            for unknown in (
                "eu1-" + "0" * 32,
                "0" * 32,
                "us2-0",
                "-" + "0" * 32,
                "US2-" + "0" * 32,
            ):
                assert code(host, unknown)[0] is ErrorCode.UNKNOWN_SESSION
            host.expire(session)
            assert code(host, session.id)[0] is ErrorCode.EXPIRED_SESSION
            await host.close()

        run_in_virtual_time(main())

    def test_a_server_without_a_tag_knows_that_others_have_one(self) -> None:
        nodes = Nodes()
        assert len(nodes.new_id()) == 32
        with pytest.raises(RequestError, match="lives on the server us2. ask there"):
            nodes.check("us2-" + "0" * 32)

    @pytest.mark.parametrize("tag", ["", "a-b", "EU", "a" * 17, "é", "a\n"])
    def test_tags_are_short_and_plain(self, tag: str) -> None:
        assert not is_tag(tag)
        if tag:
            with pytest.raises(ValueError, match="a server called"):
                Nodes(tag)
        with pytest.raises(ValueError, match="a server called"):
            Nodes("a", {tag: "https://localhost"})
