import math

import pytest

from tenuto.errors import ErrorCode, RequestError, SourceError
from tenuto.media import AudioFormat, Frame, Piece
from tenuto.session import (
    MAX_LEAD,
    Cursor,
    Departure,
    PlayoutEstimate,
    Session,
    SessionLimits,
    State,
)

TINY = AudioFormat(50, 1)  # a frame of one sample
TICK = 0.02
WINDOW = 20 + 100 + 500
"""Frames to ask for by default: 0.4 s ahead, 2 s of lead, 10 s of replay."""


def session(now: float = 0.0, *, start: int = 0, limits: SessionLimits | None = None) -> Session:
    return Session("s", TINY, now, start=start, limits=limits)


def produce(session: Session, now: float, most: int = 1 << 30) -> int:
    """Append while it wants more; how many."""
    count = 0
    while count < most and session.wants_more(now):
        session.append(Piece(b"ab", 1))
        count += 1
    return count


def take(session: Session, cursor: Cursor, now: float, most: int = 100) -> list[int]:
    """By a door that confirms what it writes."""
    frames = session.take(cursor, now, most)
    session.confirm(cursor, cursor.next, now)
    return [frame.sequence for frame in frames]


def sprint(session: Session, cursor: Cursor, now: float, *, until: int = 5000) -> None:
    """Let the producer and an unpaced listener run as fast as they can."""
    while session.end < until and produce(session, now) + len(take(session, cursor, now)):
        pass


def play(session: Session, cursors: list[Cursor], ticks: int, now: float) -> float:
    """Let the producer and these listeners run for some ticks; the time behind them."""
    for _ in range(ticks):
        produce(session, now)
        for cursor in cursors:
            take(session, cursor, now)
        now += TICK
    produce(session, now)
    return now


def refusal(session: Session, start: int | None = None, lead: float | None = 2.0) -> RequestError:
    before = (session.state, session.deadline, list(session.cursors))
    with pytest.raises(RequestError) as caught:
        session.attach("new", 0.0, start=start, lead=lead)
    assert (session.state, session.deadline, session.cursors) == before
    return caught.value


class TestProduction:
    def test_numbers_pieces_and_counts_samples(self) -> None:
        one = session(start=65_535)
        assert (one.first, one.end, one.base, one.frontier) == (65_535,) * 4
        assert one.append(Piece(b"abcd", 2, (7,))) == Frame(65_535, b"abcd", 2, (7,))
        assert one.append(Piece(b"ab", 1)).sequence == 65_536
        assert (one.first, one.end, one.samples) == (65_535, 65_537, 3)
        assert (one.id, one.audio, one.epoch) == ("s", TINY, 0)

    def test_counts_from_0_unless_told_otherwise(self) -> None:
        assert Session("s", TINY, 0.0).append(Piece(b"ab", 1)).sequence == 0

    def test_stops_at_400_ms_and_goes_on_at_200(self) -> None:
        one = session()
        assert produce(one, 0.0) == 20
        cursor = one.attach("a", 0.0, lead=None)
        for left in range(19, 10, -1):
            take(one, cursor, 0.0, most=1)
            assert one.end - one.frontier == left
            assert not one.wants_more(0.0)
        take(one, cursor, 0.0, most=1)
        assert produce(one, 0.0) == 10

    def test_a_run_begun_below_the_low_mark_fills_to_the_high_one(self) -> None:
        one = session()
        assert produce(one, 0.0, most=15) == 15
        assert produce(one, 0.0) == 5

    def test_refuses_what_is_beyond_the_mark_by_more_than_one_frame(self) -> None:
        one = session()
        for _ in range(21):
            one.append(Piece(b"ab", 1))
        with pytest.raises(ValueError, match="session s: produced beyond its high watermark"):
            one.append(Piece(b"ab", 1))
        assert one.end == 21

    @pytest.mark.parametrize("pause", [False, True])
    def test_nobody_there_means_no_production(self, pause: bool) -> None:
        one = session()
        cursor = one.attach("a", 0.0)
        assert one.wants_more(0.0)
        if pause:
            one.pause(0.0)
        else:
            one.detach(cursor, 0.0)
        assert not one.wants_more(0.0)

    def test_ends_by_finish_failure_or_expiry(self) -> None:
        ends = session(), session(), session()
        ends[0].finish()
        failure = SourceError("the engine is gone")
        ends[1].fail(failure)
        assert ends[1].failure is failure
        ends[2].close(0.0)
        for one in ends:
            assert one.done
            assert not one.wants_more(0.0)
        assert not session().done

    def test_complete_is_only_what_was_finished_and_given(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0)
        assert not one.complete(cursor)
        produce(one, 0.0, most=3)
        one.finish()
        assert not one.complete(cursor)
        take(one, cursor, 0.0)
        assert one.complete(cursor)
        assert one.complete(one.attach("b", 0.0, start=3))
        broken = session()
        reader = broken.attach("a", 0.0)
        broken.fail(SourceError("gone"))
        assert not broken.complete(reader)

    def test_an_empty_session_is_complete_at_once(self) -> None:
        one = session()
        one.finish()
        assert one.complete(one.attach("a", 0.0))

    def test_nothing_is_appended_after_the_end(self) -> None:
        finished, failed, expired = session(), session(), session()
        finished.finish()
        failed.fail(SourceError("no"))
        expired.close(0.0)
        for one in (finished, failed, expired):
            with pytest.raises(ValueError, match="after its end"):
                one.append(Piece(b"ab", 1))


class TestPace:
    def test_a_lead_first_and_then_real_time(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0, lead=0.2)
        produce(one, 0.0)
        assert one.due(cursor, 0.0) == 10
        assert take(one, cursor, 0.0) == list(range(10))
        assert take(one, cursor, 0.0) == []
        assert take(one, cursor, 0.0199) == []
        produce(one, 0.0)
        assert take(one, cursor, 0.0201) == [10]
        assert take(one, cursor, 0.1001) == [11, 12, 13, 14]

    @pytest.mark.parametrize("lead", [0.1, 0.14, 0.2, 0.7, 2.0])
    @pytest.mark.parametrize("began", [0.0, 1 / 3, 86_400.007])
    def test_every_tick_brings_one_frame_whatever_floating_point_makes_of_it(
        self, lead: float, began: float
    ) -> None:
        one, now = session(began), began
        cursor = one.attach("a", now, lead=lead)
        counts = []
        for _ in range(3000):
            produce(one, now)
            counts.append(len(take(one, cursor, now)))
            now += TICK
        assert sum(counts[:30]) == 29 + round(lead / TICK)
        assert set(counts[30:]) == {1}

    def test_a_larger_lead_is_reached_at_ten_times_real_time(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0)
        now, given = 0.0, []
        for _ in range(15):
            produce(one, now)
            given.append(len(take(one, cursor, now)))
            now += TICK
        assert given[:11] == [10] * 11
        assert sum(given) in (113, 114)
        assert set(given[12:]) <= {0, 1, 2}

    @pytest.mark.parametrize("elapsed", [0.0005, 0.001, 0.004, 0.02, 0.031])
    def test_however_often_it_is_asked_it_catches_up_at_ten_times_real_time(
        self, elapsed: float
    ) -> None:
        one = session()
        cursor = one.attach("a", 5.0, lead=30.0)
        for step in range(1, 100):
            now = 5.0 + step * elapsed
            produce(one, now)
            take(one, cursor, now)
            assert cursor.next <= 10 + (now - 5.0) * 500 + 1e-6
        if elapsed <= 0.02:
            assert cursor.next >= 10 + (now - 5.0) * 500 - 11

    def test_what_was_not_used_for_catching_up_is_not_saved(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0, lead=30.0)
        for now in (0.0, 60.0, 60.001):
            produce(one, now)
            take(one, cursor, now)
        assert cursor.next == 20

    def test_unpaced_means_all_there_is(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0, lead=None)
        produce(one, 0.0)
        assert one.due(cursor, 0.0) == 20
        assert take(one, cursor, 0.0, most=7) == list(range(7))
        assert take(one, cursor, 0.0) == list(range(7, 20))
        assert one.due(cursor, 0.0) == 0
        assert take(one, cursor, 0.0) == []

    def test_a_pause_of_the_source_is_not_made_good_by_a_burst(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0, lead=0.1)
        produce(one, 0.0, most=3)
        assert take(one, cursor, 0.0) == [0, 1, 2]
        produce(one, 60.0)
        assert take(one, cursor, 60.0) == [3, 4, 5, 6, 7]
        assert take(one, cursor, 60.001) == []

    def test_the_estimate_stands_still_when_it_has_nothing_to_play(self) -> None:
        pace = PlayoutEstimate(5, 1.0)
        assert pace.position(1.0) == pace.position(9.0) == 5
        pace.sent(15, 2.0)
        assert pace.position(2.1) == pytest.approx(10)
        pace.sent(16, 2.1)
        assert pace.position(2.21) == pytest.approx(15.5)
        assert pace.position(99.0) == 16
        pace.sent(20, 99.0)
        assert pace.position(99.04) == pytest.approx(18)

    def test_nothing_is_taken_while_paused(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0)
        produce(one, 0.0)
        one.pause(0.0)
        assert one.due(cursor, 0.0) == 0
        assert take(one, cursor, 0.0) == []
        one.resume(0.0)
        assert one.state is State.PLAYING
        assert take(one, cursor, 0.0) == list(range(10))


class TestAttach:
    def test_begins_with_the_oldest_frame_or_where_it_is_told(self) -> None:
        one = session(start=100)
        produce(one, 0.0)
        assert one.attach("a", 0.0).next == 100
        assert one.attach("b", 0.0, start=100).start == 100
        assert one.attach("c", 0.0, start=120).next == 120
        assert one.attach("d", 0.0).lead == 2.0
        assert [cursor.listener for cursor in one.cursors] == ["a", "b", "c", "d"]

    def test_frame_0_is_a_place_like_any_other(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0)
        now = play(one, [cursor], 700, 0.0)
        assert one.first > 0
        with pytest.raises(RequestError) as caught:
            one.attach("b", now, start=0)
        assert caught.value.code is ErrorCode.TOO_OLD

    @pytest.mark.parametrize("lead", [0.1, 0.2, MAX_LEAD, None])
    def test_leads_that_may_be_declared(self, lead: float | None) -> None:
        assert session().attach("a", 0.0, lead=lead).lead == lead

    @pytest.mark.parametrize("lead", [0.0, 0.0999, 30.001, -1.0, math.inf, math.nan])
    def test_leads_that_may_not(self, lead: float) -> None:
        error = refusal(session(), lead=lead)
        assert error.code is ErrorCode.BAD_REQUEST
        assert error.message == f"a lead of {lead:g} s"
        assert error.remedy == "declare 0.1 to 30 seconds, or max"

    def test_an_expired_session_names_its_last_frame(self) -> None:
        one = session(start=5)
        produce(one, 0.0)
        one.close(0.0)
        error = refusal(one)
        assert error.code is ErrorCode.EXPIRED_SESSION
        assert error.detail == {"last": 24}
        assert (error.message, error.remedy) == ("session s has expired", "start a new one")

    @pytest.mark.parametrize(("start", "first"), [(4, 5), (-1, 5), (0, 5)])
    def test_too_old_names_the_first_frame_there_is(self, start: int, first: int) -> None:
        one = session(start=5)
        produce(one, 0.0)
        error = refusal(one, start=start)
        assert error.code is ErrorCode.TOO_OLD
        assert error.detail == {"first": first, "end": 25, "epoch": 0}
        assert error.message == f"frame {start} is no longer held"
        assert error.remedy == "go on from frame 5"

    def test_far_ahead_names_the_end(self) -> None:
        one = session(start=5)
        produce(one, 0.0)
        error = refusal(one, start=26)
        assert error.code is ErrorCode.FAR_AHEAD
        assert error.detail == {"first": 5, "end": 25, "epoch": 0}
        assert error.message == "frame 26 lies ahead of frame 25, the next to come"
        assert error.remedy == "ask for 25 or less"

    def test_whoever_comes_back_is_not_one_more_but_not_without_end(self) -> None:
        one = session(limits=SessionLimits(max_listeners=2))
        one.attach("a", 0.0)
        one.attach("b", 0.0)
        one.attach("a", 0.0)
        one.attach("a", 0.0)
        with pytest.raises(RequestError) as caught:
            one.attach("a", 0.0)
        assert caught.value.code is ErrorCode.AT_CAPACITY

    def test_full_to_the_brim(self) -> None:
        one = session(limits=SessionLimits(max_listeners=2))
        one.attach("a", 0.0)
        leaving = one.attach("b", 0.0)
        error = refusal(one)
        assert error.code is ErrorCode.AT_CAPACITY
        assert error.message == "session s has 2 listeners already"
        assert error.remedy == "try again later or start another session"
        one.detach(leaving, 0.0)
        one.attach("c", 0.0)

    def test_leaving_twice_is_leaving_once(self) -> None:
        one = session()
        cursor, other = one.attach("a", 0.0), one.attach("b", 0.0)
        one.detach(cursor, 0.0)
        assert one.state is State.PLAYING
        one.detach(cursor, 0.0)
        assert one.cursors == [other]
        one.detach(other, 5.0)
        one.detach(other, 6.0)
        assert one.state is State.IDLE
        assert one.deadline == 305.0


class TestSupersede:
    def test_the_older_leg_goes_on_until_the_newer_has_its_first_frame(self) -> None:
        one = session()
        produce(one, 0.0)
        old = one.attach("a", 0.0, lead=0.1)
        other = one.attach("b", 0.0, lead=0.1)
        assert take(one, old, 0.0) == [0, 1, 2, 3, 4]
        new = one.attach("a", 0.05, start=5, lead=0.1)
        assert take(one, old, 0.05, most=1) == [5]
        # It still plays what the older leg brought: the lead is one, not one for each leg.
        assert take(one, new, 0.05) == [5, 6]
        assert old.departure is Departure.SUPERSEDED
        assert (take(one, old, 9.0), one.due(old, 9.0)) == ([], 0)
        assert (new.departure, other.departure) == (None, None)
        assert take(one, other, 0.05) == [0, 1, 2, 3, 4]

    def test_an_attach_that_gets_no_frame_supersedes_nobody(self) -> None:
        one = session()
        produce(one, 0.0, most=3)
        old = one.attach("a", 0.0)
        new = one.attach("a", 0.0, start=3)
        assert take(one, new, 0.0) == []
        assert take(one, old, 0.0) == [0, 1, 2]
        assert old.departure is None

    def test_the_newest_of_three_wins_whoever_is_first(self) -> None:
        one = session()
        produce(one, 0.0)
        first, second, third = (one.attach("a", 0.0) for _ in range(3))
        assert take(one, second, 0.0, most=1) == [0]
        assert (first.departure, third.departure) == (Departure.SUPERSEDED, None)
        assert take(one, third, 0.0, most=1) == [0]
        assert second.departure is Departure.SUPERSEDED
        assert third.departure is None

        first, second, third = (one.attach("b", 0.0) for _ in range(3))
        take(one, third, 0.0)
        assert (first.departure, second.departure) == (Departure.SUPERSEDED,) * 2

    def test_only_the_first_frames_supersede(self) -> None:
        one = session()
        produce(one, 0.0)
        old = one.attach("a", 0.0)
        take(one, old, 0.0, most=1)
        one.attach("a", 0.0)
        assert take(one, old, 0.0, most=1) == [1]
        assert old.departure is None


class TestFootprint:
    def test_is_the_window_until_the_end_and_then_what_is_held(self) -> None:
        one = session()
        assert one.footprint == (WINDOW + 20) * TINY.frame_size
        one.attach("a", 0.0, lead=None)
        produce(one, 0.0, most=7)
        one.finish()
        assert one.footprint == 7 * TINY.frame_size
        one.close(0.0)
        assert one.footprint == 0

    def test_grows_with_the_largest_lead(self) -> None:
        one = session()
        assert one.growth(2.0) == one.growth(0.2) == one.growth(None) == 0
        extra = one.growth(5.0)
        assert extra == 150 * TINY.frame_size
        before = one.footprint
        one.attach("a", 0.0, lead=5.0)
        assert one.footprint == before + extra
        assert one.growth(5.0) == 0


class TestReplayWindow:
    @pytest.mark.parametrize(("lead", "window"), [(2.0, 620), (0.2, 620), (5.0, 770), (30.0, 2020)])
    def test_lasts_for_the_largest_lead_and_ten_seconds_more(
        self, lead: float, window: int
    ) -> None:
        one = session()
        cursor = one.attach("a", 0.0, lead=lead)
        other = one.attach("b", 0.0, lead=0.2)
        now = play(one, [cursor, other], window + 100, 0.0)
        assert one.end - one.first == window
        assert one.end - one.frontier <= 20
        one.attach("c", now, start=one.first)
        assert refusal(one, start=one.first - 1).code is ErrorCode.TOO_OLD

    def test_a_listener_that_stalls_falls_behind_and_holds_nobody_up(self) -> None:
        one = session()
        stalled = one.attach("stalled", 0.0)
        steady = one.attach("steady", 0.0)
        produce(one, 0.0)
        assert take(one, stalled, 0.0) == list(range(10))
        now, given = 0.0, 0
        for _ in range(2000):
            produce(one, now)
            given += len(take(one, steady, now))
            now += TICK
        assert given == pytest.approx(2100, abs=3)
        assert one.first > stalled.next
        assert stalled.departure is None
        assert take(one, stalled, now) == []
        assert stalled.departure is Departure.FELL_BEHIND
        assert one.due(stalled, now) == 0
        assert one.attach("stalled", now).next == one.first

    def test_the_oldest_frame_can_still_be_had(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0)
        now = play(one, [cursor], 700, 0.0)
        late = one.attach("b", now, start=one.first, lead=None)
        assert take(one, late, now, most=1000) == list(range(one.first, one.end))
        assert take(one, one.attach("c", now), now)[0] == one.first

    def test_an_unpaced_listener_waits_for_a_paced_one_that_still_plays(self) -> None:
        one = session()
        paced = one.attach("paced", 0.0, lead=0.2)
        unpaced = one.attach("unpaced", 0.0, lead=None)
        now, got = 0.0, []
        for _ in range(200):
            sprint(one, unpaced, now)
            got += take(one, paced, now)
            now += TICK
        assert got == list(range(len(got)))
        assert len(got) == pytest.approx(210, abs=2)
        sprint(one, unpaced, now)
        assert one.end == len(got) + WINDOW + 20
        # It stalls: once it has played its own audio the other goes on.
        stalled_at = now
        while not produce(one, now) and now < stalled_at + 9.0:
            take(one, unpaced, now)
            now += TICK
        assert 0.15 < now - stalled_at < 0.21

    def test_of_two_unpaced_listeners_the_faster_waits_for_one_above_real_time(self) -> None:
        one = session()
        slow = one.attach("slow", 0.0, lead=None)
        fast = one.attach("fast", 0.0, lead=None)
        now, got = 0.0, []
        for _ in range(1000):
            sprint(one, fast, now)
            got += take(one, slow, now, most=2)
            now += TICK
        assert slow.departure is None
        assert got == list(range(2000))
        # Below real time it has nothing left to play, and is given up in the end.
        for number in range(4000):
            sprint(one, fast, now)
            got += take(one, slow, now, most=number % 2)
            now += TICK
        assert slow.departure is Departure.FELL_BEHIND

    def test_nothing_is_lost_when_the_unpaced_one_leaves(self) -> None:
        one = session()
        paced = one.attach("paced", 0.0, lead=0.2)
        unpaced = one.attach("unpaced", 0.0, lead=None)
        got = take(one, paced, 0.0)
        sprint(one, unpaced, 0.0)
        assert one.end == one.frontier == WINDOW + 20
        one.detach(unpaced, 0.0)
        now = 0.0
        for _ in range(1000):
            produce(one, now)
            got += take(one, paced, now)
            now += TICK
        assert paced.departure is None
        assert got == list(range(len(got)))
        assert len(got) > 1000

    @pytest.mark.parametrize("lead", [None, 0.2])
    def test_a_listener_at_the_oldest_frame_has_time_to_take_it(self, lead: float | None) -> None:
        one = session()
        cursor = one.attach("a", 0.0, lead=None)
        sprint(one, cursor, 0.0, until=981)
        assert one.end == 1000
        late = one.attach("late", 0.0, lead=lead)
        first = late.next
        with pytest.raises(RequestError, match=f"frame {first - 1} is no longer held"):
            one.attach("later", 0.0, start=first - 1)
        now = 0.0999
        sprint(one, cursor, now)
        assert one.end == 1020
        assert take(one, late, now)[0] == first
        assert produce(one, now) > 0

    def test_but_not_for_ever(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0, lead=None)
        sprint(one, cursor, 0.0, until=981)
        assert one.end == 1000
        late = one.attach("late", 0.0)
        now = 0.1001
        sprint(one, cursor, now, until=1021)
        assert one.due(late, now) == 0
        assert take(one, late, now) == []
        assert late.departure is Departure.FELL_BEHIND

    def test_one_that_is_superseded_holds_nobody_up(self) -> None:
        one = session()
        produce(one, 0.0)
        old = one.attach("a", 0.0, lead=30.0)
        take(one, old, 0.0, most=20)
        new = one.attach("a", 0.0, start=old.next, lead=None)
        sprint(one, new, 0.0)
        assert one.end >= 5000
        assert old.departure is Departure.SUPERSEDED
        assert one.first > old.next


class TestLife:
    def test_never_attached(self) -> None:
        one = session(5.0)
        assert one.state is State.NEW
        assert one.deadline == 35.0
        assert not one.check(34.999)
        assert one.check(35.0)
        assert one.state is State.EXPIRED
        assert one.check(36.0)

    def test_the_end_returns_the_memory_and_tells_everybody(self) -> None:
        one = session()
        produce(one, 0.0)
        old = one.attach("a", 0.0)
        new = one.attach("a", 0.0)
        take(one, new, 0.0)
        one.close(1.0)
        assert (old.departure, new.departure) == (Departure.SUPERSEDED, Departure.EXPIRED)
        assert (one.first, one.end) == (20, 20)
        assert take(one, new, 1.0) == []
        one.detach(new, 1.0)
        one.detach(old, 1.0)
        assert one.state is State.EXPIRED
        one.close(2.0)

    def test_the_last_to_leave_starts_the_clock(self) -> None:
        one = session()
        cursor = one.attach("a", 10.0)
        assert one.deadline == 21600.0
        one.detach(cursor, 10.0)
        assert one.deadline == 310.0
        one.attach("a", 309.0)
        assert one.deadline == 21600.0

    def test_pause_has_its_own_limit(self) -> None:
        one = session()
        one.attach("a", 0.0)
        one.pause(10.0)
        one.pause(20.0)
        assert one.state is State.PAUSED
        assert one.deadline == 1820.0

    def test_listeners_may_come_and_go_while_paused(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0)
        one.pause(0.0)
        one.detach(cursor, 0.0)
        assert one.state is State.PAUSED
        one.resume(0.0)
        assert one.state is State.IDLE
        one.pause(0.0)
        one.attach("a", 0.0)
        assert one.state is State.PAUSED
        one.resume(0.0)
        assert one.state is State.PLAYING
        one.resume(0.0)
        assert one.state is State.PLAYING

    def test_resuming_what_is_over_changes_nothing(self) -> None:
        one = session()
        one.attach("a", 0.0)
        one.close(0.0)
        one.resume(0.0)
        one.pause(0.0)
        assert one.state is State.EXPIRED
