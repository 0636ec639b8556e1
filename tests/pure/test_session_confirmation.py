"""What has arrived, what was only sent, and whom a dead connection costs anything: nobody."""

from __future__ import annotations

import pytest

from tenuto.media import AudioFormat, Piece
from tenuto.session import Cursor, Departure, Session, State

TINY = AudioFormat(50, 1)
TICK = 0.02
RING = 640


def session(*, start: int = 0, now: float = 0.0) -> Session:
    return Session("s", TINY, now, start=start)


def produce(session: Session, now: float) -> int:
    count = 0
    while session.wants_more(now):
        session.append(Piece(b"ab", 1))
        count += 1
    return count


def take(session: Session, cursor: Cursor, now: float, most: int = 100) -> int:
    return len(session.take(cursor, now, most))


class TestFrontier:
    def test_is_what_was_sent_while_it_may_still_arrive(self) -> None:
        one = session()
        produce(one, 0.0)
        cursor = one.attach("a", 0.0, lead=None)
        take(one, cursor, 0.0)
        assert one.frontier == 20
        assert produce(one, 0.500) == 20
        assert produce(one, 0.501) == 0
        assert one.frontier == 0

    def test_what_arrived_counts_for_ever(self) -> None:
        one = session(start=65_530)
        produce(one, 0.0)
        cursor = one.attach("a", 0.0, lead=None)
        take(one, cursor, 0.0)
        one.confirm(cursor, 65_537, 0.1)
        one.detach(cursor, 0.2)
        assert one.frontier == 65_537
        one.attach("b", 0.3, start=65_537)
        assert produce(one, 50.0) == 0
        one.check(50.0)
        assert one.frontier == 65_537

    def test_a_confirmation_gives_another_half_second(self) -> None:
        one = session()
        produce(one, 0.0)
        cursor = one.attach("a", 0.0, lead=None)
        take(one, cursor, 0.0)
        one.confirm(cursor, 1, 0.4)
        one.wants_more(0.9)
        assert one.frontier == 20
        one.wants_more(0.901)
        assert one.frontier == 1

    def test_one_that_is_heard_of_again_leads_again(self) -> None:
        one = session()
        produce(one, 0.0)
        cursor = one.attach("a", 0.0, lead=None)
        take(one, cursor, 0.0)
        one.wants_more(3.0)
        assert one.frontier == 0
        one.confirm(cursor, 5, 3.0)
        assert one.frontier == 20
        assert produce(one, 3.0) == 20

    def test_what_a_silent_one_is_sent_does_not_move_it(self) -> None:
        one = session()
        produce(one, 0.0)
        cursor = one.attach("a", 0.0, lead=None)
        take(one, cursor, 0.0, most=5)
        take(one, cursor, 0.6)
        assert (cursor.next, one.frontier) == (20, 5)
        one.wants_more(0.6)
        assert one.frontier == 0

    def test_it_falls_back_to_the_best_of_the_others(self) -> None:
        one = session()
        produce(one, 0.0)
        dead, slow, done = (one.attach(name, 0.0, lead=None) for name in "abc")
        take(one, dead, 0.0)
        take(one, done, 0.0, most=3)
        one.confirm(done, 3, 0.1)
        take(one, slow, 0.4, most=9)
        one.wants_more(0.6)
        assert one.frontier == 9
        one.detach(slow, 0.6)
        assert one.frontier == 3
        one.detach(dead, 0.6)
        one.detach(done, 0.6)
        assert one.frontier == 3

    def test_nobody_confirms_what_was_never_sent(self) -> None:
        one = session()
        produce(one, 0.0)
        cursor = one.attach("a", 0.0, lead=None)
        take(one, cursor, 0.0, most=5)
        one.confirm(cursor, 1 << 40, 0.0)
        assert (cursor.confirmed, one.frontier) == (5, 5)
        one.confirm(cursor, 2, 0.0)
        assert cursor.confirmed == 5

    def test_a_confirmation_that_comes_after_its_listener_left_changes_nothing(self) -> None:
        one = session()
        produce(one, 0.0)
        cursor = one.attach("a", 0.0, lead=None)
        take(one, cursor, 0.0)
        one.detach(cursor, 0.1)
        one.confirm(cursor, 20, 0.2)
        assert one.frontier == 0

    @pytest.mark.parametrize(("rtt", "silence"), [(0.0, 0.5), (0.1, 0.7), (0.8, 2.1), (99.0, 4.5)])
    def test_a_long_path_is_waited_for_but_not_for_ever(self, rtt: float, silence: float) -> None:
        one = session()
        produce(one, 0.0)
        cursor = one.attach("a", 0.0, lead=None)
        one.confirm(cursor, 0, 0.0, rtt)
        take(one, cursor, 0.0)
        assert not cursor.silent(silence - 0.001)
        assert cursor.silent(silence + 0.001)

    def test_one_that_was_sent_nothing_more_is_not_silent(self) -> None:
        one = session()
        produce(one, 0.0)
        cursor = one.attach("a", 0.0, lead=None)
        assert not cursor.silent(20.0)
        take(one, cursor, 0.0)
        one.confirm(cursor, 20, 0.1)
        assert not cursor.silent(20.0)
        produce(one, 20.0)
        take(one, cursor, 20.0)
        assert not cursor.silent(20.5)
        assert cursor.silent(20.6)

    def test_one_that_goes_on_at_a_frame_has_those_before_it(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0)
        now = 0.0
        for _ in range(20):
            produce(one, now)
            take(one, cursor, now)
            now += TICK
        # All of it was heard, but the connection was gone before anybody learnt of that.
        one.detach(cursor, now)
        assert (one.frontier, one.end > 100) == (0, True)
        new = one.attach("a", now, start=one.end)
        assert produce(one, now) == 20
        assert take(one, new, now) > 0


class TestOthers:
    def test_a_dead_leg_holds_nobodys_ring(self) -> None:
        one = session()
        dead = one.attach("dead", 0.0, lead=30.0)
        fast = one.attach("fast", 0.0, lead=None)
        produce(one, 0.0)
        # 30 s of lead, so that by the estimate alone it would play for long.
        now = 0.0
        while dead.next < 1000:
            produce(one, now)
            take(one, dead, now)
            one.confirm(dead, dead.next, now)
            take(one, fast, now)
            one.confirm(fast, fast.next, now)
            now += TICK
        produce(one, now)
        assert take(one, dead, now) > 0
        last, dies = dead.next, now
        # Held back by one who has 20 s of audio to play, as long as that may have arrived.
        while one.end < last + 3000 and now < dies + 1.0:
            while one.end < last + 3000 and produce(one, now) + take(one, fast, now):
                one.confirm(fast, fast.next, now)
            now += TICK
        assert 0.5 < now - dies < 0.6
        assert dead.playing(dies + 0.4)
        assert not dead.playing(now)

    def test_a_source_pauses_when_its_only_leg_dies_and_goes_on_with_a_new_one(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0)
        now = 0.0
        for _ in range(150):
            produce(one, now)
            take(one, cursor, now)
            if now < 1.0:
                one.confirm(cursor, cursor.next, now)
            now += TICK
        arrived, made = cursor.confirmed, one.end
        # Sent for half a second into nothing, and then no more is made than belongs to that.
        assert made - arrived <= 25 * 10 + 20
        for _ in range(100):
            assert produce(one, now) == 0
            take(one, cursor, now)
            now += TICK
        assert one.frontier == arrived
        new = one.attach("a", now, start=arrived)
        got = one.take(new, now, 100)
        assert [frame.sequence for frame in got] == list(range(arrived, arrived + 10))
        assert cursor.departure is None
        one.confirm(new, arrived + 1, now + 0.05)
        assert cursor.departure is Departure.SUPERSEDED
        for _ in range(100):
            produce(one, now)
            take(one, new, now)
            one.confirm(new, new.next, now)
            now += TICK
        assert one.end > made


class TestSupersede:
    def test_is_by_the_first_frame_that_arrives(self) -> None:
        one = session()
        produce(one, 0.0)
        old, new = one.attach("a", 0.0), one.attach("a", 0.0)
        take(one, old, 0.0, most=2)
        take(one, new, 0.0, most=2)
        one.confirm(new, 0, 0.1, 0.1)
        assert old.departure is None
        assert take(one, old, 0.1, most=1) == 1
        one.confirm(new, 1, 0.2)
        assert old.departure is Departure.SUPERSEDED

    def test_by_the_first_one_behind_a_flush_too(self) -> None:
        one = session()
        produce(one, 0.0)
        old, new = one.attach("a", 0.0), one.attach("a", 0.0)
        take(one, new, 0.0, most=2)
        one.flush(0.1, TINY)
        produce(one, 0.1)
        assert take(one, new, 0.1) > 0
        assert old.departure is None
        one.confirm(new, new.next, 0.2)
        assert old.departure is Departure.SUPERSEDED


class TestProgress:
    def test_one_that_stands_still_is_sent_its_lead_and_no_more(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0, lead=1.0)
        now = 0.0
        for tick in range(1000):
            produce(one, now)
            take(one, cursor, now)
            one.confirm(cursor, cursor.next, now)
            if tick >= 100 and tick % 5 == 0:
                one.progress("a", 100, now)
            now += TICK
        assert cursor.next <= 100 + 50 + 5

    def test_one_that_goes_on_is_given_more(self) -> None:
        one = session()
        cursor = one.attach("a", 0.0, lead=1.0)
        other = one.attach("b", 0.0, lead=1.0)
        now = 0.0
        for tick in range(500):
            produce(one, now)
            for each in (cursor, other):
                take(one, each, now)
                one.confirm(each, each.next, now)
            if tick % 50 == 0:
                one.progress("a", max(0, tick - 25), now)
            now += TICK
        # A player half a second behind what was reckoned.
        assert cursor.next == pytest.approx(500 + 50 - 25, abs=2)
        assert other.next == pytest.approx(500 + 50, abs=2)

    def test_nonsense_is_bounded_by_what_was_sent_and_by_the_epoch(self) -> None:
        one = session(start=100)
        produce(one, 0.0)
        cursor = one.attach("a", 0.0, lead=None)
        take(one, cursor, 0.0)
        one.progress("a", 1 << 50, 0.0)
        assert cursor.pace.position(0.0) == 120
        one.progress("a", 0, 0.0)
        assert cursor.pace.position(0.0) == 100
        one.progress("nobody", 7, 0.0)

    @pytest.mark.parametrize("slowness", [0.0, 0.02, 0.5])
    def test_one_that_says_it_stands_still_holds_nobody_up(self, slowness: float) -> None:
        one = session()
        slow, healthy = one.attach("a", 0.0), one.attach("b", 0.0, lead=0.5)
        for tick in range(3000):
            now = tick * TICK
            if tick % 5 == 0:
                one.progress("a", int(tick * slowness), now)
            for each in (slow, healthy):
                produce(one, now)
                take(one, each, now)
                one.confirm(each, each.next, now)
            assert tick < 5 or healthy.next >= tick + 24
        assert slow.departure is Departure.FELL_BEHIND

    def test_keeps_a_session_that_waits_for_a_resume_but_only_once_a_second(self) -> None:
        one = session()
        one.progress("a", 0, 20.0)
        assert one.deadline == 30.0
        cursor = one.attach("a", 25.0)
        one.progress("a", 0, 26.0)
        assert one.deadline == 21_600.0
        one.detach(cursor, 100.0)
        one.progress("a", 0, 100.9)
        assert one.deadline == 400.0
        one.progress("a", 0, 101.0)
        assert one.deadline == 401.0
        one.progress("a", 0, 101.5)
        assert one.deadline == 401.0
        one.pause(200.0)
        one.progress("a", 0, 300.0)
        assert one.deadline == 2100.0
        assert one.check(2100.0)
        one.progress("a", 0, 2200.0)
        assert one.state is State.EXPIRED


def test_a_path_with_a_round_trip_of_800_ms_carries_real_time() -> None:
    """Confirmations come a round trip late; the sender stops at its limit of bytes."""
    one, rtt, lead = session(), 0.8, 2.0
    cursor = one.attach("a", 0.0, lead=lead)
    one.confirm(cursor, 0, 0.0, rtt)
    most = round((lead + 2 * rtt + 0.2) / TICK)
    under_way: list[tuple[float, int]] = []
    arrivals: dict[int, float] = {}
    for tick in range(3000):
        now = tick * TICK
        while under_way and under_way[0][0] <= now:
            one.confirm(cursor, under_way.pop(0)[1], now, rtt)
        produce(one, now)
        room = most - (cursor.next - cursor.confirmed)
        if room > 0:
            before = cursor.next
            if take(one, cursor, now, most=room):
                under_way.append((now + rtt, cursor.next))
                arrivals |= dict.fromkeys(range(before, cursor.next), now + rtt / 2)
        assert cursor.next - cursor.confirmed <= most
    # The listener plays from its first frame on: none comes too late, and none too early.
    began = arrivals[0]
    spare = [began + number * TICK - arrived for number, arrived in arrivals.items()]
    assert min(spare) >= -1e-9
    assert max(spare) <= lead + 1e-9
    assert max(arrivals) >= 3000 - 1
    assert min(spare[500:]) > lead - 2 * TICK
