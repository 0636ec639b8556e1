"""When packets arrive: delay, jitter, order, copies."""

import statistics

import pytest

from netem.link import Link, Packet
from netem.link.delay import deviation
from netem.profile import Conditions, Distribution, Jitter, RandomLoss, Rate
from tests.pure.netem.sending import arrivals, numbered

TIMES = [number * 0.020 for number in range(5000)]


def test_the_delay_is_the_delay() -> None:
    found = arrivals(Link(Conditions(delay=0.030), 1, 0.0), TIMES)
    assert found == [(number, time + 0.030) for number, time in enumerate(TIMES)]


def test_without_conditions_a_packet_is_due_at_once() -> None:
    link = Link(Conditions(), 1, 0.0)
    assert link.next_deadline() is None
    assert link.pop_due(5.0) == []
    packet = Packet(b"x", 29)
    link.offer(packet, 5.0)
    assert link.next_deadline() == 5.0
    assert link.pop_due(4.999) == []
    assert link.pop_due(5.0) == [packet]
    assert link.tally.mean_delay == 0.0


def test_those_due_together_keep_their_order() -> None:
    for jitter in (None, Jitter(spread=0.0, reordering=True)):
        link = Link(Conditions(delay=1.0, jitter=jitter), 1, 0.0)
        for number in range(50):
            link.offer(numbered(number), 0.0)
        assert link.pop_due(1.0) == [numbered(number) for number in range(50)]


@pytest.mark.parametrize("distribution", Distribution)
def test_the_spread_is_what_the_profile_says(distribution: Distribution) -> None:
    jitter = Jitter(spread=0.005, distribution=distribution, reordering=True)
    found = arrivals(Link(Conditions(delay=1.0, jitter=jitter), 1, 0.0), TIMES * 4)
    delays = [time - TIMES[number % 5000] - 1.0 for number, time in found]
    assert statistics.mean(delays) == pytest.approx(0.0, abs=0.0003)
    # Of tc-netem's table of the Pareto distribution, which is cut, the deviation is 0.82.
    widths = {Distribution.UNIFORM: 0.005 / 3**0.5, Distribution.PARETO: 0.0041}
    assert statistics.pstdev(delays) == pytest.approx(widths.get(distribution, 0.005), rel=0.03)


def test_deviations_at_the_ends_of_a_draw() -> None:
    almost_one = 1.0 - 2.0**-53
    assert deviation(Distribution.NORMAL, 0.0) == -4.0
    assert deviation(Distribution.NORMAL, 0.5) == pytest.approx(0.0)
    assert deviation(Distribution.NORMAL, almost_one) == 4.0
    assert deviation(Distribution.UNIFORM, 0.0) == -1.0
    assert deviation(Distribution.UNIFORM, almost_one) == pytest.approx(1.0)
    # The ends and the middle of tc-netem's table.
    assert deviation(Distribution.PARETO, 0.0) == pytest.approx(-5461 / 8192, abs=0.001)
    assert deviation(Distribution.PARETO, 0.5) == pytest.approx(-2622 / 8192, abs=0.001)
    assert deviation(Distribution.PARETO, almost_one) == 4.0


@pytest.mark.parametrize("distribution", Distribution)
@pytest.mark.parametrize("reordering", [False, True])
def test_order_is_kept_unless_the_profile_says_otherwise(
    distribution: Distribution, reordering: bool
) -> None:
    jitter = Jitter(spread=0.030, distribution=distribution, reordering=reordering)
    link = Link(Conditions(delay=0.020, jitter=jitter), 1, 0.0)
    found = arrivals(link, TIMES)
    numbers = [number for number, _ in found]
    assert len(numbers) == 5000
    assert (numbers != sorted(numbers)) is reordering
    assert (link.tally.reordered > 100) is reordering
    # No packet is early, however wide the spread.
    assert all(time >= TIMES[number] for number, time in found)
    # Counted again: those due before one that was sent earlier.
    overtakers, highest = 0, -1.0
    for _, time in sorted(found):
        overtakers += time < highest
        highest = max(highest, time)
    assert link.tally.reordered == overtakers


def test_some_skip_the_delay_and_overtake() -> None:
    link = Link(Conditions(delay=0.050, reorder=0.25), 1, 0.0)
    found = dict(arrivals(link, TIMES))
    skipped = [number for number, time in found.items() if time == TIMES[number]]
    assert len(skipped) / 5000 == pytest.approx(0.25, abs=0.02)
    assert all(found[number] == TIMES[number] + 0.050 for number in found if number not in skipped)
    # At 50 packets a second two others are under way, unless they skipped too.
    assert link.tally.reordered == pytest.approx(0.25 * (1 - 0.25**2) * 5000, rel=0.1)


def test_those_that_skip_do_not_disturb_the_order_of_the_others() -> None:
    jitter = Jitter(spread=0.030)
    link = Link(Conditions(delay=0.050, jitter=jitter, reorder=0.1), 1, 0.0)
    found = arrivals(link, TIMES)
    delayed = [number for number, time in found if time != TIMES[number]]
    assert delayed == sorted(delayed)


def test_who_skips_the_delay_still_waits_at_the_bottleneck() -> None:
    rate = Rate(bits_per_second=8000.0, queue=10)
    link = Link(Conditions(delay=0.5, reorder=1.0, bottleneck=rate), 1, 0.0)
    assert arrivals(link, [0.0, 0.0]) == [(0, pytest.approx(0.1)), (1, pytest.approx(0.2))]


# Copies


def test_duplicates_come_right_behind() -> None:
    link = Link(Conditions(delay=0.010, duplicate=0.1), 1, 0.0)
    found = arrivals(link, TIMES)
    assert link.tally.duplicated == len(found) - 5000 == pytest.approx(500, rel=0.15)
    assert found == sorted(found)
    assert link.tally.delivered == len(found)


def test_one_bit_is_turned_in_some() -> None:
    data = bytes(range(40))
    link = Link(Conditions(corrupt=0.2), 1, 0.0)
    places = set()
    corrupted = 0
    for _ in range(20_000):
        link.offer(Packet(data, 68), 0.0)
        (arrived,) = link.pop_due(0.0)
        assert arrived.size == 68
        turned = int.from_bytes(arrived.data) ^ int.from_bytes(data)
        assert len(arrived.data) == 40
        if turned:
            assert turned.bit_count() == 1
            corrupted += 1
            places.add(turned)
    assert corrupted == link.tally.corrupted == pytest.approx(4000, rel=0.05)
    assert len(places) == 320


def test_nothing_can_be_turned_in_nothing() -> None:
    link = Link(Conditions(corrupt=1.0), 1, 0.0)
    link.offer(Packet(b"", 28), 0.0)
    assert link.pop_due(0.0) == [Packet(b"", 28)]
    assert link.tally.corrupted == 0


def test_the_mean_delay_is_of_those_that_passed() -> None:
    link = Link(Conditions(delay=0.040, loss=RandomLoss(rate=0.5)), 1, 0.0)
    arrivals(link, TIMES)
    assert link.tally.mean_delay == pytest.approx(0.040)
    assert Link(Conditions(), 1, 0.0).tally.mean_delay == 0.0
