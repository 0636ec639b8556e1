"""When a path is under suspicion: by the lag of what comes, in plain numbers."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.policy import Alarm, LateShare, Switches, Watchdog, WatchPolicy

POLICY = WatchPolicy()
FRAME = 0.02


def dog(*, lead: float | None = 2.0, chunk: int = 1, policy: WatchPolicy = POLICY) -> Watchdog:
    """Of a stream that begins at 0."""
    made = Watchdog(policy, 0.0, lead=lead)
    made.begin(0, 0.0)
    made.announced(chunk)
    made.attend(0.0)
    return made


def watch(dog: Watchdog, until: float) -> list[tuple[float, Alarm]]:
    """All alarms up to then, each when it was due."""
    alarms = []
    while (due := dog.due()) <= until:
        fired = dog.check(due)
        assert fired, "a deadline at which nothing is due would be met for ever"
        alarms += [(due, alarm) for alarm in fired]
    return alarms


def play(dog: Watchdog, arrivals: list[tuple[float, int]]) -> list[tuple[float, Alarm]]:
    """`arrivals`: when all frames below a number had come."""
    alarms = []
    for at, next in arrivals:
        alarms += watch(dog, at)
        dog.arrived(next, at)
    return alarms


def steady(count: int, *, chunk: int = 1, start: float = 0.0) -> list[tuple[float, int]]:
    return [(start + n * FRAME, n) for n in range(chunk, count + 1, chunk)]


def kinds(alarms: list[tuple[float, Alarm]]) -> set[Alarm]:
    return {alarm for _, alarm in alarms}


def first(alarms: list[tuple[float, Alarm]], kind: Alarm) -> float:
    return next(at for at, alarm in alarms if alarm is kind)


def test_what_comes_in_time_is_no_reason_for_anything() -> None:
    assert play(dog(), steady(500)) == []


@pytest.mark.parametrize("chunk", [1, 5, 10])
def test_silence_leads_from_pings_to_suspicion_to_a_switch(chunk: int) -> None:
    watched = dog(chunk=chunk)
    assert play(watched, steady(100, chunk=chunk)) == []
    alarms = [(at - 2.0, alarm) for at, alarm in watch(watched, 3.5)]
    own = chunk * FRAME
    assert first(alarms, Alarm.PING) == pytest.approx(max(5, 2 * chunk) * FRAME)
    assert first(alarms, Alarm.SUSPECT) == pytest.approx(0.5 + own, abs=0.01)
    assert first(alarms, Alarm.SWITCH) == pytest.approx(1.0 + own, abs=0.01)
    pings = [at for at, alarm in alarms if alarm is Alarm.PING]
    assert all(later - one == pytest.approx(0.1) for one, later in pairwise(pings))
    assert [alarm for _, alarm in alarms].count(Alarm.SWITCH) == 1
    assert [alarm for _, alarm in alarms].count(Alarm.SUSPECT) == 1
    assert watched.suspected
    assert watched.silent(3.5)


def test_pings_have_an_end() -> None:
    watched = dog()
    alarms = [alarm for _, alarm in watch(watched, 1000.0)]
    assert alarms.count(Alarm.PING) == POLICY.most_pings
    assert watched.due() == inf
    assert watched.check(2000.0) == ()


def test_ten_frames_at_once_are_waited_for_without_a_ping() -> None:
    assert play(dog(chunk=10), steady(1000, chunk=10)) == []


def test_of_a_greater_chunk_the_signs_of_life_meanwhile_count() -> None:
    watched = dog(chunk=36)
    at = 0.0
    for n in range(20):
        for life in (0.2, 0.4, 0.6):
            assert watch(watched, at + life) == []
            watched.alive(at + life)
        at += 36 * FRAME
        assert watch(watched, at) == []
        watched.arrived(36 * (n + 1), at)


def test_a_trickle_is_a_black_hole_that_takes_longer() -> None:
    """Four fifths of real time: every record comes soon after the last one, but late."""
    watched = dog()
    play(watched, steady(100))
    trickle = [(2.0 + n * FRAME / 0.8, 100 + n) for n in range(1, 400)]
    alarms = play(watched, trickle)
    assert kinds(alarms) == {Alarm.SUSPECT, Alarm.SWITCH}
    # A fifth of a second is lost in each.
    assert first(alarms, Alarm.SUSPECT) == pytest.approx(4.6, abs=0.1)
    assert first(alarms, Alarm.SWITCH) == pytest.approx(7.1, abs=0.1)
    assert not watched.silent(trickle[-1][0])


def test_a_lead_that_is_filled_is_no_schedule_to_be_kept() -> None:
    """Ten times real time at first, then real time."""
    burst = [(n * FRAME / 10, n) for n in range(1, 101)]
    assert play(dog(), burst + [(0.2 + n * FRAME, 100 + n) for n in range(1, 500)]) == []


def test_a_quiet_source_is_not_the_paths_fault() -> None:
    """Keepalives: whatever is due has come. Two pings at the beginning, and none after them."""
    watched = dog()
    play(watched, steady(100))
    alarms = []
    for n in range(1, 16):
        alarms += watch(watched, 2.0 + 0.2 * n)
        watched.alive(2.0 + 0.2 * n)
    assert kinds(alarms) == {Alarm.PING}
    assert len(alarms) <= 2
    # When it goes on, its lead is filled again, and nothing is due before.
    assert play(watched, [(5.0 + n * FRAME / 10, 100 + n) for n in range(1, 101)]) == []
    assert play(watched, [(5.2 + n * FRAME, 200 + n) for n in range(1, 100)]) == []


def test_silence_after_a_sign_of_life_counts_from_there() -> None:
    watched = dog()
    play(watched, steady(100))
    watch(watched, 2.2)
    watched.alive(2.2)
    alarms = watch(watched, 4.0)
    assert first(alarms, Alarm.PING) == pytest.approx(2.6)
    assert first(alarms, Alarm.SWITCH) == pytest.approx(3.2)


def test_a_source_slower_than_real_time_says_so() -> None:
    watched = dog()
    for n in range(1, 500):
        at = n * FRAME / 0.7
        assert watch(watched, at) == []
        watched.arrived(n, at)
        if n % 8 == 0:
            watched.alive(at)


def test_time_in_which_nobody_waits_does_not_count() -> None:
    watched = dog()
    play(watched, steady(50))
    watched.rest(1.0)
    assert watched.due() == inf
    assert watched.check(60.0) == ()
    watched.attend(60.0)
    watched.attend(60.0)
    assert watched.lag(60.0) == pytest.approx(-FRAME, abs=0.01)
    assert first(watch(watched, 62.0), Alarm.SWITCH) == pytest.approx(61.02, abs=0.01)


def test_what_waited_with_us_restores_the_schedule() -> None:
    watched = dog()
    play(watched, steady(50))
    watched.rest(1.0)
    watched.attend(4.0)
    assert watched.arrived(200, 4.0) == 0.0
    assert play(watched, [(4.0 + n * FRAME, 200 + n) for n in range(1, 100)]) == []


def test_nothing_is_due_while_paused() -> None:
    watched = dog()
    play(watched, steady(50))
    watched.sleep()
    assert watched.due() == inf
    assert watched.check(100.0) == ()
    watched.begin(50, 600.0)
    assert watch(watched, 600.05) == []
    assert play(watched, [(600.0 + n * FRAME, 50 + n) for n in range(1, 50)]) == []


@pytest.mark.parametrize("gap", [100, 100_000])
def test_a_gap_or_an_epoch_begins_a_schedule(gap: int) -> None:
    watched = dog()
    play(watched, steady(50))
    watched.begin(50 + gap, 1.0)
    assert play(watched, [(1.0 + n * FRAME, 50 + gap + n) for n in range(1, 200)]) == []


def test_an_unpaced_sender_has_to_bring_real_time() -> None:
    watched = dog(lead=None)
    assert play(watched, [(n * FRAME / 50, n) for n in range(1, 1001)]) == []
    # Far ahead as it is, silence is silence.
    assert first(watch(watched, 2.0), Alarm.SWITCH) == pytest.approx(0.4 + 1.02, abs=0.01)
    slow = dog(lead=None)
    assert Alarm.SWITCH in kinds(play(slow, [(n * FRAME / 0.6, n) for n in range(1, 300)]))


def test_a_switch_that_came_to_nothing_is_called_for_again() -> None:
    watched = dog()
    times = []
    at = 0.0
    for _ in range(8):
        at = first(watch(watched, at + 100.0), Alarm.SWITCH)
        times.append(at)
        watched.tried(at)
    waits = [later - one for one, later in pairwise(times)]
    assert waits == pytest.approx([1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0])
    watched.arrived(int(at / FRAME), at)
    assert not watched.suspected
    assert first(watch(watched, at + 2.0), Alarm.SWITCH) == pytest.approx(at + 1.02)


def test_a_path_that_became_longer_is_forgiven() -> None:
    watched = dog()
    play(watched, steady(100))
    later = [(2.3 + n * FRAME, 100 + n) for n in range(1, 10_000)]
    assert kinds(play(watched, later)) <= {Alarm.PING}
    assert watched.arrived(10_100, later[-1][0] + FRAME) < 0.05


def test_clocks_that_differ_are_no_lag() -> None:
    """A whole hour at 300 ppm would be a second."""
    watched = dog()
    assert play(watched, [(n * FRAME * 1.0003, n) for n in range(1, 180_000)]) == []


# Properties


@given(
    jitter=st.lists(st.floats(0.0, 0.44), min_size=1, max_size=200),
    chunk=st.integers(1, 10),
    lead=st.sampled_from([0.2, 2.0, 30.0]),
    source=st.sampled_from(["even", "burst"]),
)
def test_no_suspicion_while_all_comes_in_time(
    jitter: list[float], chunk: int, lead: float, source: str
) -> None:
    watched = dog(chunk=chunk, lead=lead)
    arrivals: list[tuple[float, int]] = []
    at = 0.0
    for n, late in enumerate(jitter, 1):
        due = n * chunk * FRAME
        if source == "burst":
            due = max(due / 10, due - lead)
        at = max(at, due + late)
        arrivals.append((at, n * chunk))
    assert kinds(play(watched, arrivals)) <= {Alarm.PING}


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["frames", "alive", "gap", "rest", "epoch"]),
            st.integers(0, 40),
            st.floats(0.0, 3.0),
        ),
        max_size=60,
    ),
    chunk=st.integers(1, 64),
    lead=st.sampled_from([None, 0.2, 2.0]),
)
def test_a_switch_follows_on_the_last_record_within_one_and_a_fifth(
    steps: list[tuple[str, int, float]], chunk: int, lead: float | None
) -> None:
    watched = dog(chunk=chunk, lead=lead)
    at, next = 0.0, 0
    for what, count, wait in steps:
        at += wait
        watched.check(at)
        if what == "frames":
            next += count + 1
            watched.arrived(next, at)
        elif what == "alive":
            watched.alive(at)
        elif what == "rest":
            watched.rest(at)
            at += wait
            watched.attend(at)
        else:
            next += count + 1
            watched.begin(next, at)
    watched.arrived(next + 1, at)
    if not watched.suspected:
        alarms = watch(watched, at + 1.2 + 1e-6)
        assert Alarm.SWITCH in kinds(alarms)
    assert watched.due() > at


# Switches


def test_late_frames_count_by_the_window() -> None:
    share = LateShare(3.0, 0.05)
    assert not share.bad(0.0)
    for n in range(200):
        share.add(1, n * FRAME, late=n % 10 == 0)
        assert share.bad(n * FRAME) == (n >= 150)
    for n in range(200, 400):
        share.add(1, n * FRAME, late=False)
    assert not share.bad(8.0)


@pytest.mark.parametrize(("every", "bad"), [(25, False), (15, True)])
def test_the_share_has_a_threshold(every: int, bad: bool) -> None:
    share = LateShare(3.0, 0.05)
    for n in range(300):
        share.add(1, n * FRAME, late=n % every == 0)
    assert share.bad(6.0) == bad


def test_a_few_frames_tell_nothing_and_another_leg_begins_anew() -> None:
    share = LateShare(3.0, 0.05)
    share.add(10, 0.0, late=True)
    share.add(10, 2.9, late=True)
    assert not share.bad(3.0)
    share.add(100, 3.0, late=True)
    assert share.bad(3.0)
    share.clear()
    share.add(100, 3.1, late=True)
    assert not share.bad(3.1)
    assert not share.bad(30.0)


def test_what_is_remembered_of_late_frames_has_a_bound() -> None:
    share = LateShare(3.0, 0.05)
    for n in range(100_000):
        share.add(1, n / 10_000, late=True)
    assert len(share._buckets) <= 32
    assert share.bad(10.0)


def test_a_switch_for_pleasure_has_its_distance_from_any_other() -> None:
    switches = Switches(30.0, 5.0)
    assert not switches.may(34.9)
    assert switches.may(35.0)
    assert switches.upgrade_at(10.0, 0.0) == 35.0
    assert switches.upgrade_at(10.0, 300.0) == 310.0
    switches.made(40.0)
    assert not switches.may(69.9)
    assert switches.upgrade_at(41.0, 5.0) == 70.0


def test_times_may_be_scaled() -> None:
    watched = dog(policy=replace(POLICY, suspect=0.05, switch=0.1))
    assert first(watch(watched, 1.0), Alarm.SWITCH) == pytest.approx(0.1, abs=0.021)


def test_what_an_outage_cost_is_not_asked_for_for_ever() -> None:
    """Three seconds are lost, audio flows again at its own pace: that is the schedule now."""
    watched = dog()
    play(watched, steady(100))
    watch(watched, 5.0)
    assert watched.suspected
    back = [(5.0 + n * FRAME, 100 + n) for n in range(1, 200)]
    play(watched, back[:10])
    assert watched.flowing(back[9][0])  # and so no other leg is needed
    assert watched.lag(back[9][0]) == pytest.approx(3.0, abs=0.1)
    play(watched, back[10:24])
    assert watched.suspected
    assert play(watched, back[24:]) == []
    assert not watched.suspected
    assert watched.lag(back[-1][0]) < 0.05


def test_a_burst_after_an_outage_flows_too() -> None:
    watched = dog()
    play(watched, steady(100))
    watch(watched, 5.0)
    assert not watched.flowing(5.0)  # what flowed before does not count
    watched.arrived(112, 5.0)
    assert watched.flowing(5.2)
    assert not watched.flowing(5.3)


@pytest.mark.parametrize(("frames", "every"), [(1, 0.64), (4, 0.3), (1, 0.025), (9, 0.2)])
def test_a_trickle_does_not_flow_and_is_no_schedule(frames: int, every: float) -> None:
    watched = dog()
    play(watched, steady(100))
    trickle = [(2.0 + n * every, 100 + n * frames) for n in range(1, 400)]
    alarms = play(watched, trickle)
    assert Alarm.SWITCH in kinds(alarms)
    assert watched.suspected
