"""Flushes, the two modes, and where the text is when its frames are gone."""

from __future__ import annotations

import pytest

from tenuto.errors import ErrorCode, RequestError, SourceError
from tenuto.media import AudioFormat, Piece
from tenuto.session import Cursor, Departure, Session, SessionLimits, State
from tenuto.session.marks import MAX_KEPT_MARKS

TINY = AudioFormat(50, 1)
WIDE = AudioFormat(100, 2)
TICK = 0.02


def session(*, start: int = 0, live: bool = False) -> Session:
    return Session("s", TINY, 0.0, start=start, live=live)


def produce(session: Session, now: float, most: int = 20) -> int:
    count = 0
    while count < most and session.wants_more(now):
        session.append(Piece(b"ab", 1))
        count += 1
    return count


def take(session: Session, cursor: Cursor, now: float, most: int = 1000) -> list[int]:
    frames = session.take(cursor, now, most)
    session.confirm(cursor, cursor.next, now)
    return [frame.sequence for frame in frames]


def refusal(session: Session, now: float = 0.0, **wish: int) -> RequestError:
    with pytest.raises(RequestError) as caught:
        session.attach("new", now, **wish)  # type: ignore[arg-type]
    with pytest.raises(RequestError) as checked:
        session.check_attach("new", now, **wish)  # type: ignore[arg-type]
    assert checked.value.message == caught.value.message
    return caught.value


class TestFlush:
    def test_a_new_source_goes_on_with_the_next_number(self) -> None:
        one = session(start=65_530)
        produce(one, 0.0)
        cursor = one.attach("a", 0.0, lead=None)
        assert take(one, cursor, 0.0, 4) == [65_530, 65_531, 65_532, 65_533]
        assert not one.flush(0.1, TINY)
        assert (one.epoch, one.base, one.first, one.end) == (1, 65_550, 65_550, 65_550)
        assert (one.samples, one.frontier, one.start) == (0, 65_550, 65_530)
        assert produce(one, 0.1) == 20
        assert take(one, cursor, 0.1, 2) == [65_550, 65_551]
        one.finish()
        assert take(one, cursor, 0.1) == list(range(65_552, 65_570))
        assert one.complete(cursor)
        assert (one.end - one.base, one.samples) == (20, 20)

    def test_frees_what_lies_below_the_base(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0, lead=None)
        while one.end < 500:
            produce(one, 0.0)
            take(one, cursor, 0.0)
        one.finish()
        assert one.footprint == one.end * 2
        one.flush(1.0)
        one.finish()
        assert one.footprint == 0

    def test_without_a_source_it_waits_as_long_as_for_a_resume(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0)
        produce(one, 0.0)
        assert not one.flush(100.0)
        assert one.waiting
        assert not one.done
        assert not one.wants_more(100.0)
        assert not one.complete(cursor)
        assert take(one, cursor, 100.0) == []
        assert cursor.departure is None
        assert one.deadline == 400.0
        one.progress("a", 5, 200.0)
        assert one.deadline == 400.0
        assert not one.flush(300.0, TINY)
        assert not one.waiting
        assert one.deadline == 21_600.0
        assert one.epoch == 2
        assert produce(one, 300.0) == 20
        one.flush(400.0)
        assert one.check(700.0)
        assert cursor.departure is Departure.EXPIRED

    def test_what_is_waited_for_may_be_paused_and_left(self) -> None:
        one = session()
        one.detach(one.attach("a", 0.0), 1.0)
        one.flush(100.0)
        assert one.deadline == 301.0
        one.pause(200.0)
        assert one.deadline == 400.0

    @pytest.mark.parametrize("fails", [False, True])
    def test_an_end_and_a_failure_are_forgotten(self, fails: bool) -> None:
        one = session()
        produce(one, 0.0)
        cursor = one.attach("a", 0.0, lead=None)
        take(one, cursor, 0.0)
        if fails:
            one.fail(SourceError("gone"))
        else:
            one.finish()
        assert one.done
        one.flush(0.0, TINY)
        assert (one.done, one.failure, one.finished) == (False, None, False)
        assert produce(one, 0.0) == 20
        assert take(one, cursor, 0.0) == list(range(20, 40))

    def test_what_is_over_cannot_be_flushed(self) -> None:
        one = session()
        produce(one, 0.0)
        with pytest.raises(RequestError) as caught:
            one.flush(30.0, TINY)
        assert caught.value.code is ErrorCode.EXPIRED_SESSION
        assert caught.value.detail == {"last": 19}
        assert one.epoch == 0

    def test_a_live_source_goes_on_with_the_present(self) -> None:
        one = session(live=True)
        for _ in range(300):
            one.append(Piece(b"ab", 1))
        cursor = one.attach("a", 0.0, lead=0.2)
        assert take(one, cursor, 0.0, 3) == [290, 291, 292]
        assert one.flush(0.1)
        assert not one.waiting
        one.append(Piece(b"ab", 1))
        assert take(one, cursor, 0.1) == [300]
        assert one.dropped == 0

    def test_a_live_source_that_has_ended_does_not(self) -> None:
        one = session(live=True)
        one.attach("a", 0.0)
        one.finish()
        assert not one.flush(0.0)
        assert one.waiting
        assert not one.wants_more(0.0)
        assert not one.flush(0.1)
        one.flush(0.2, TINY, live=True)
        assert one.wants_more(0.2)
        assert one.live
        one.flush(0.3, TINY)
        assert not one.live

    def test_another_format_is_that_of_the_new_epoch(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0, lead=None)
        produce(one, 0.0)
        assert one.renewal(TINY) == 0
        assert one.renewal(WIDE) == one.footprint * 3
        one.flush(0.0, WIDE)
        assert one.audio == WIDE
        assert one.largest_frame == WIDE.frame_size
        assert one.format_at(20).audio == WIDE
        assert one.format_at(0).audio == WIDE
        one.append(Piece(bytes(8), 2))
        assert take(one, cursor, 0.0) == [20]
        one.flush(0.0, TINY)
        assert one.newest_format.id == 2
        one.finish()
        assert one.renewal(WIDE) == 640 * WIDE.frame_size

    def test_a_paused_session_stays_paused(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0)
        produce(one, 0.0)
        one.pause(0.0)
        one.flush(0.0, TINY)
        assert one.state is State.PAUSED
        assert not one.wants_more(0.0)
        one.resume(1.0)
        assert produce(one, 1.0) == 20
        assert take(one, cursor, 1.0)[0] == 20


class TestAsking:
    def test_an_old_epoch_is_told_from_what_is_too_old(self) -> None:
        one = session(start=50)
        produce(one, 0.0)
        one.flush(0.0, TINY)
        error = refusal(one, epoch=0, start=60)
        assert error.code is ErrorCode.OLD_EPOCH
        assert error.detail == {"epoch": 1, "first": 70, "base": 70}
        assert error.message == "epoch 0 of this session is over"
        assert error.remedy == "go on in epoch 1, from frame 70"
        error = refusal(one, start=60)
        assert error.code is ErrorCode.TOO_OLD
        assert error.detail == {"first": 70, "end": 70, "epoch": 1}

    def test_an_epoch_to_come_is_far_ahead(self) -> None:
        one = session(start=50)
        produce(one, 0.0)
        error = refusal(one, epoch=3)
        assert error.code is ErrorCode.FAR_AHEAD
        assert error.detail == {"first": 50, "end": 70, "epoch": 0}
        assert error.message == "epoch 3 lies ahead of epoch 0, the present one"
        assert error.remedy == "ask for epoch 0"

    def test_the_present_epoch_is_just_right(self) -> None:
        one = session()
        produce(one, 0.0)
        assert one.attach("a", 0.0, epoch=0, start=0).next == 0
        one.flush(0.0, TINY)
        assert one.attach("a", 0.0, epoch=1).next == 20

    def test_a_session_is_over_at_its_deadline_and_not_before(self) -> None:
        one = session()
        one.check_attach("a", 29.999)
        assert refusal(one, 30.0).code is ErrorCode.EXPIRED_SESSION
        assert one.state is State.EXPIRED
        other = session()
        other.attach("a", 29.999)
        assert not other.check(30.0)


class TestLive:
    def test_it_jumps_where_it_is_more_than_its_lead_and_a_half_behind(self) -> None:
        one = session(live=True)
        cursor = one.attach("a", 0.0, lead=0.2)
        now = 0.0
        for _ in range(50):
            one.append(Piece(b"ab", 1))
            take(one, cursor, now)
            now += TICK
        assert (cursor.next, one.dropped) == (50, 0)
        for _ in range(35):
            one.append(Piece(b"ab", 1))
        assert take(one, cursor, now, 1) == [50]
        assert one.dropped == 0
        one.append(Piece(b"ab", 1))
        one.append(Piece(b"ab", 1))
        assert take(one, cursor, now, 1) == [77]
        assert one.dropped == 77 - 51

    @pytest.mark.parametrize("start", [0, 5, 1965])
    def test_an_attach_far_behind_goes_on_near_the_newest(self, start: int) -> None:
        one = session(live=True)
        for _ in range(2000):
            one.append(Piece(b"ab", 1))
        cursor = one.attach("a", 0.0, start=start, lead=0.2)
        assert cursor.next == start
        assert take(one, cursor, 0.0)[0] == (1990 if start < 1900 else start)
        assert one.dropped == (1990 - start if start < 1900 else 0)

    def test_an_attach_below_the_base_begins_in_this_epoch(self) -> None:
        one = session(live=True)
        for _ in range(100):
            one.append(Piece(b"ab", 1))
        one.flush(0.0)
        assert one.attach("a", 0.0, start=3, lead=0.2).next == 100

    def test_it_may_be_asked_of_a_source_that_can_wait(self) -> None:
        one = session()
        other = one.attach("other", 0.0, lead=None)
        stalled = one.attach("stalled", 0.0, lead=0.2, live=True)
        for _ in range(100):
            produce(one, 0.0)
            take(one, other, 0.0)
        end = one.end
        assert take(one, stalled, 0.0) == list(range(end - 10, end))
        assert stalled.departure is None
        late = one.attach("late", 0.0, lead=None, live=True)
        assert late.next == end - 10

    def test_gapless_gets_every_frame_of_a_live_source_that_is_held(self) -> None:
        one = session(live=True)
        for _ in range(100):
            one.append(Piece(b"ab", 1))
        cursor = one.attach("a", 0.0, start=20, lead=0.2, live=False)
        got, now = [], 0.0
        while now < 100.0:
            one.append(Piece(b"ab", 1))
            got += take(one, cursor, now)
            now += TICK
        assert got == list(range(20, 20 + len(got)))
        assert one.dropped == 0
        # A lead beyond what it plays, caught up with at ten times real time, not in a burst.
        assert len(got) == pytest.approx(5000 + 10, abs=2)
        for _ in range(700):
            one.append(Piece(b"ab", 1))
        assert take(one, cursor, now)[0] == one.end - 10
        assert one.dropped > 600
        assert refusal(one, now, start=one.first - 1, live=False).code is ErrorCode.TOO_OLD

    def test_gapless_without_a_place_begins_with_the_present_of_a_live_source(self) -> None:
        one = session(live=True)
        for _ in range(100):
            one.append(Piece(b"ab", 1))
        assert one.attach("a", 0.0, lead=None, live=False).next == 90


class TestText:
    def test_a_place_in_the_text_outlives_its_frames(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0, lead=None)
        while one.end < 2000:
            while one.wants_more(0.0):
                number = one.end
                marks = (number - 1, number) if number % 50 == 7 else ()
                one.append(Piece(b"ab", 1, marks))
            take(one, cursor, 0.0)
        assert one.text_offset(6) is None
        assert one.text_offset(7) == 7
        assert one.text_offset(56) == 7
        assert one.text_offset(57) == 57
        for start in (6, 57, 1000):
            error = refusal(one, start=start)
            assert error.code is ErrorCode.TOO_OLD
            # Where the listener was, not where the window now begins: what lies between is lost.
            assert error.detail.get("text_offset") == one.text_offset(start)
        one.close(0.0)
        assert refusal(one).detail == {"last": one.end - 1, "text_offset": 1957}

    def test_a_new_epoch_is_another_text(self) -> None:
        one = session()
        one.append(Piece(b"ab", 1, (5,)))
        assert one.text_offset(0) == 5
        one.flush(0.0, TINY)
        assert one.text_offset(1) is None

    def test_only_so_many_are_remembered(self) -> None:
        one = session(live=True)
        for number in range(MAX_KEPT_MARKS + 10):
            one.append(Piece(b"ab", 1, (2 * number,)))
        assert len(one._marks) == MAX_KEPT_MARKS
        assert one.text_offset(9) is None
        assert one.text_offset(10) == 20
        assert one.text_offset(1 << 40) == 2 * (MAX_KEPT_MARKS + 9)


def test_a_life_may_be_as_short_as_the_limits_say() -> None:
    limits = SessionLimits(retention=5.0, paused=6.0, refresh=0.5)
    one = Session("s", TINY, 0.0, limits=limits)
    cursor = one.attach("a", 0.0)
    assert not one.check(20.0)
    one.detach(cursor, 20.0)
    one.attach("a", 24.999)
    one.pause(30.0)
    assert not one.check(34.0)
    one.pause(34.0)
    assert not one.check(36.0)
    assert one.check(40.0)
