"""The bottleneck lies behind delay, jitter and copies: two links in a row do the same as one."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netem.link import Link, Packet
from netem.link.transit import MAX_BYTES, MAX_PACKETS
from netem.profile import Bottleneck, Conditions, Jitter, RandomLoss, Rate, Schedule
from tests.pure.netem.sending import arrivals, law, number_of, numbered

RATE = Rate(bits_per_second=80_000.0, queue=5)
"""A packet of 100 bytes in 10 ms."""
TIMES = [number * 0.004 for number in range(400)]

TRAVELS = st.builds(
    Conditions,
    delay=st.floats(0.0, 0.1),
    jitter=st.none() | st.builds(Jitter, spread=st.floats(0.001, 0.05), reordering=st.booleans()),
    reorder=st.sampled_from([0.0, 0.2]),
    duplicate=st.sampled_from([0.0, 0.3]),
    loss=st.sampled_from([None, RandomLoss(rate=0.1)]),
)
BOTTLENECKS: st.SearchStrategy[Bottleneck] = st.sampled_from(
    [RATE, Rate(bits_per_second=1e6, queue=1), Schedule(opportunities=(3, 3, 40, 90), queue=3)]
)


@given(TRAVELS, BOTTLENECKS, st.integers(0, 1_000))
def test_what_comes_out_of_the_one_goes_into_the_other(
    travel: Conditions, bottleneck: Bottleneck, seed: int
) -> None:
    both = Link(replace(travel, bottleneck=bottleneck), seed, 0.0)
    first, second = Link(travel, seed, 0.0), Link(Conditions(bottleneck=bottleneck), seed, 0.0)
    for number, time in arrivals(first, TIMES):
        second.offer(numbered(number), time)
    expected = []
    while (due := second.next_deadline()) is not None:
        expected += [(number_of(packet), due) for packet in second.pop_due(due)]
    assert arrivals(both, TIMES) == expected
    found, one, two = both.tally, first.tally, second.tally
    assert law(found)
    assert (found.lost, found.duplicated, found.reordered) == (
        one.lost,
        one.duplicated,
        one.reordered,
    )
    assert found.queue_dropped == two.queue_dropped
    assert found.delivered == two.delivered
    sent = sum(TIMES[number] for number, _ in expected)
    assert found.delay_total == pytest.approx(sum(due for _, due in expected) - sent)


def test_what_jitter_has_bunched_leaves_at_the_rate() -> None:
    wide = Rate(bits_per_second=80_000.0, queue=1_000)
    link = Link(Conditions(delay=0.1, jitter=Jitter(spread=0.05), bottleneck=wide), 1, 0.0)
    times = [time for _, time in arrivals(link, [number * 0.02 for number in range(1_000)])]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert min(gaps) == pytest.approx(0.010)


def test_who_overtakes_is_on_the_wire_first_and_books_are_kept_meanwhile() -> None:
    # Every packet skips the delay or not, by a draw of its own: these two do not, then do.
    conditions = Conditions(delay=0.5, reorder=0.5, bottleneck=Rate(bits_per_second=8e3, queue=10))
    for seed in range(20):
        link = Link(conditions, seed, 0.0)
        link.offer(numbered(0), 0.0)
        link.offer(numbered(1), 0.1)
        if link.next_deadline() == 0.1:
            break
    assert (link.tally.in_flight, link.tally.reordered) == (2, 1)
    assert link.tally.mean_delay == pytest.approx((0.5 + 0.0) / 2)
    # It has reached the bottleneck, and nothing is there to hand on yet.
    assert link.pop_due(0.1) == []
    assert link.next_deadline() == pytest.approx(0.2)
    assert link.tally.mean_delay == pytest.approx((0.5 + 0.1) / 2)
    assert link.pop_due(0.25) == [numbered(1)]
    assert link.next_deadline() == 0.5
    assert link.pop_due(0.65) == [numbered(0)]
    assert link.tally.mean_delay == pytest.approx((0.6 + 0.1) / 2)
    assert link.next_deadline() is None
    assert law(link.tally)


def test_a_copy_takes_room_at_the_bottleneck() -> None:
    link = Link(Conditions(duplicate=1.0, bottleneck=RATE), 1, 0.0)
    for number in range(3):
        link.offer(numbered(number), 0.0)
    assert (link.tally.duplicated, link.tally.queue_dropped) == (3, 1)
    assert [number_of(packet) for packet in link.pop_due(1.0)] == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("reordering", [False, True])
def test_a_full_queue_changes_nobody_s_delay(reordering: bool) -> None:
    travel = Conditions(delay=0.1, jitter=Jitter(spread=0.02, reordering=reordering))
    free = dict(arrivals(Link(travel, 3, 0.0), TIMES))
    # A millisecond on the wire, and nobody waits for another.
    rate = Rate(bits_per_second=800_000.0, queue=1)
    link = Link(replace(travel, bottleneck=rate), 3, 0.0)
    found = arrivals(link, TIMES)
    assert link.tally.queue_dropped > 20
    assert [time for _, time in found] == pytest.approx(
        [free[number] + 0.001 for number, _ in found]
    )


@pytest.mark.untraced
def test_what_comes_to_the_bottleneck_is_bounded_in_packets_and_bytes() -> None:
    conditions = Conditions(
        delay=1.0,
        jitter=Jitter(spread=0.1, reordering=True),
        bottleneck=Rate(bits_per_second=1e12, queue=1_000_000),
    )
    link = Link(conditions, 1, 0.0)
    for _ in range(MAX_PACKETS + 10):
        link.offer(Packet(b"", 28), 0.0)
    assert (link.tally.in_flight, link.tally.overflowed) == (MAX_PACKETS, 10)
    assert law(link.tally)
    assert len(link.pop_due(3.0)) == MAX_PACKETS
    for _ in range(MAX_BYTES // 65_536 + 3):
        link.offer(Packet(b"", 65_536), 3.0)
    assert (link.tally.in_flight, link.tally.overflowed) == (MAX_BYTES // 65_536, 13)
    assert len(link.pop_due(6.0)) == MAX_BYTES // 65_536
    link.offer(Packet(b"", 28), 6.0)
    assert link.tally.in_flight == 1
