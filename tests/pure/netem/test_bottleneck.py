"""The narrow place: rates, traces, and queues that are full."""

import random
import re

import pytest

from netem.link import Link, Packet
from netem.profile import Conditions, Rate, Schedule
from tests.pure.netem.sending import arrivals, numbered


def rate(bits_per_second: float, queue: int, delay: float = 0.0) -> Link:
    narrow = Rate(bits_per_second=bits_per_second, queue=queue)
    return Link(Conditions(delay=delay, bottleneck=narrow), 1, 0.0)


def trace(*opportunities: int, queue: int = 1_000_000, started: float = 0.0) -> Link:
    narrow = Schedule(opportunities=opportunities, queue=queue)
    return Link(Conditions(bottleneck=narrow), 1, started)


def test_packets_leave_one_after_another_at_the_rate() -> None:
    # 1,000 bits each: a tenth of a second.
    found = arrivals(rate(10_000.0, 100, delay=1.0), [0.0, 0.0, 0.0, 5.0], size=125)
    assert [time for _, time in found] == pytest.approx([1.1, 1.2, 1.3, 6.1])


def test_the_queue_holds_exactly_what_it_says_with_the_one_on_the_wire() -> None:
    link = rate(8000.0, 5)
    for number in range(10):
        link.offer(numbered(number), 0.0)
    assert link.tally.queue_dropped == 5
    # A moment before the first has left nobody fits; when it has, one does.
    link.offer(numbered(10), 0.0999)
    assert link.tally.queue_dropped == 6
    link.offer(numbered(11), 0.1)
    link.offer(numbered(12), 0.1)
    assert link.tally.queue_dropped == 7
    assert link.pop_due(10.0) == [numbered(number) for number in (0, 1, 2, 3, 4, 11)]


def test_a_link_offered_twice_its_rate_carries_its_rate() -> None:
    link = rate(800_000.0, 20)
    found = arrivals(link, [number * 0.0005 for number in range(20_000)])
    assert len(found) == pytest.approx(10_000, abs=21)
    # Behind a full queue everybody waits its whole length.
    delays = [time - number * 0.0005 for number, time in found[1000:]]
    assert min(delays) >= 0.019 - 1e-9
    assert max(delays) <= 0.020 + 1e-9


def mahimahi(
    opportunities: list[int], offers: list[tuple[int, int]], until: int
) -> list[tuple[int, int]]:
    """Number and millisecond of each departure, told from the trace millisecond by millisecond."""
    period = opportunities[-1]
    waiting: list[list[int]] = []
    departures = []
    arriving = list(enumerate(offers))
    for now in range(until):
        # What is served now was there before.
        count = opportunities.count(now % period) if now % period else 0
        if now == 0 or now % period == 0:
            count = opportunities.count(0) + (opportunities.count(period) if now else 0)
        for _ in range(count):
            left = 1500
            while waiting and left:
                taken = min(left, waiting[0][1])
                left -= taken
                waiting[0][1] -= taken
                if not waiting[0][1]:
                    departures.append((waiting.pop(0)[0], now))
        while arriving and arriving[0][1][0] == now:
            number, (_, size) = arriving.pop(0)
            waiting.append([number, size])
    return departures


@pytest.mark.parametrize("seed", range(20))
def test_a_trace_is_followed_to_the_millisecond(seed: int) -> None:
    chance = random.Random(seed)
    period = chance.randint(1, 60)
    opportunities = sorted(chance.randint(0, period) for _ in range(chance.randint(0, 40)))
    opportunities.append(period)
    load = chance.choice([0.1, 0.7, 1.5])
    room = load * 1500 * len(opportunities) * 2000 / period
    offers = []
    while room > 0:
        size = chance.choice([40, 100, 750, 1500, 4000])
        offers.append((chance.randint(0, 2000), size))
        room -= size
    offers.sort(key=lambda offer: offer[0])
    link = trace(*opportunities)
    for number, (time, size) in enumerate(offers):
        link.offer(numbered(number, size), time / 1000.0)
    found = []
    for now in range(4000):
        found += [(int.from_bytes(p.data), now) for p in link.pop_due(now / 1000.0)]
    assert found == mahimahi(opportunities, offers, 4000), f"seed {seed}"


def test_a_saturated_trace_is_used_to_the_last_byte() -> None:
    link = trace(2, 3, 3, 10, started=50.0)
    for number in range(3000):
        link.offer(numbered(number, 500), 50.0)
    # Four opportunities of three packets in each of ten periods.
    assert len(link.pop_due(50.0 + 0.1005)) == 120
    assert link.next_deadline() == pytest.approx(50.102)


def test_what_nobody_uses_is_lost() -> None:
    link = trace(10, 20, 1000)
    assert arrivals(link, [0.001, 0.0105, 0.015, 0.020], size=700) == [
        (0, 0.010),
        (1, 0.020),
        (2, 0.020),
        # The moment itself is too late.
        (3, 1.000),
    ]


def test_packets_span_opportunities_and_share_them() -> None:
    link = trace(10, 20, 30)
    assert [time for _, time in arrivals(link, [0.0, 0.0, 0.0, 0.0, 0.0], size=1000)] == [
        0.010,
        0.020,
        0.020,
        0.030,
        0.040,
    ]


def test_a_trace_has_a_queue_too() -> None:
    link = trace(10, queue=3)
    for number in range(5):
        link.offer(numbered(number, 1500), 0.0)
    assert link.tally.queue_dropped == 2
    link.offer(numbered(5, 1500), 0.010)
    assert link.pop_due(9.0) == [numbered(number, 1500) for number in (0, 1, 2, 5)]


def test_after_a_long_silence_the_trace_is_where_it_should_be() -> None:
    link = trace(0, 7, 7, 13, started=3.0)
    link.offer(Packet(b"", 1500), 3.0 + 13.0 * 1_000_000 + 0.006)
    assert link.next_deadline() == 3.0 + 13.0 * 1_000_000 + 0.007


@pytest.mark.parametrize("moments", [(), (0,), (0, 0)])
def test_a_trace_without_length_is_refused(moments: tuple[int, ...]) -> None:
    narrow = Schedule(opportunities=moments, queue=10, name="mine.trace")
    with pytest.raises(ValueError, match=re.escape("mine.trace: a trace must last longer")):
        Link(Conditions(bottleneck=narrow), 1, 0.0)


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing passes at 0.0 bits"):
        rate(0.0, 10)
