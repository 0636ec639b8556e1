"""Offsets, base, groups, histogram and target, as docs/playout.md has them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.media import Frame
from tenuto.playout import JitterBuffer
from tenuto.playout.arrival import Arrival, Arrivals, SlidingMinimum
from tenuto.playout.histogram import CELLS, DelayHistogram
from tenuto.playout.target import Target


@given(st.lists(st.tuples(st.integers(0, 40_000), st.integers(-1000, 1000)), max_size=200))
def test_the_sliding_minimum_is_that_of_its_cells(steps: list[tuple[int, int]]) -> None:
    minimum = SlidingMinimum(cells=5, width=10_000)
    seen: list[tuple[int, int]] = []
    now = 0
    for step, value in steps:
        now += step
        minimum.add(value, now)
        seen.append((now // 10_000, value))
        recent = [value for cell, value in seen if cell > now // 10_000 - 5]
        assert minimum.value == min(recent)
        assert len(minimum._minima) <= 5


def observed(arrivals: Arrivals, *events: tuple[float, int]) -> list[Arrival]:
    """Milliseconds and sequences."""
    return [arrivals.observe(sequence, round(at * 1000)) for at, sequence in events]


def delays(arrivals: Arrivals, *events: tuple[float, int]) -> list[float]:
    return [arrival.delay / 1000 for arrival in observed(arrivals, *events)]


def test_delays_count_from_the_base_before() -> None:
    arrivals = Arrivals()
    assert delays(arrivals, (0, 0), (25, 1), (38, 2), (61, 3)) == [0, 5, 0, 3]


def test_a_lead_being_built_is_no_jitter() -> None:
    arrivals = Arrivals()
    assert delays(arrivals, *((n * 2, n) for n in range(100))) == [0] * 100
    assert arrivals.base == -18 * 99 * 1000


def test_the_base_is_two_seconds_old_at_most() -> None:
    arrivals = Arrivals()
    assert delays(arrivals, *((n * 20, n) for n in range(100))) == [0] * 100
    # 15 ms are lost for good. That counts until the cell with the last of the old offsets, 1.9 to
    # 2 s, is the twentieth before the newest: from 3.9 s on, which is frame 195.
    late = delays(arrivals, *((n * 20 + 15, n) for n in range(100, 300)))
    assert late == [15] * 95 + [0] * 105


def test_what_all_of_half_a_second_is_late_by_moves_the_base_and_is_no_jitter() -> None:
    arrivals = Arrivals()
    observed(arrivals, *((n * 20, n) for n in range(50)))
    # 80 ms are lost for good, at 1 s, where an interval opens; the next one opens 500 ms later.
    after = observed(arrivals, *((n * 20 + 80, n) for n in range(50, 100)))
    assert [arrival.delay for arrival in after] == [80_000] * 25 + [0] * 25
    assert {arrival.spread for arrival in after} == {0}
    assert arrivals.base == 80_000


def test_a_queue_that_drains_within_its_interval_is_jitter() -> None:
    arrivals = Arrivals()
    observed(arrivals, *((n * 20, n) for n in range(50)))
    # Nothing for 300 ms, then all at once.
    after = observed(arrivals, *((1300 + n * 0.1, 50 + n) for n in range(16)))
    assert after[0].delay == 300_000
    # The first says nothing yet; once one of them is in time again, all is known.
    assert after[0].spread == 0
    assert after[-1].spread == 300_000
    assert arrivals.base == 0


def test_a_pause_of_more_than_a_second_begins_anew() -> None:
    arrivals = Arrivals()
    assert delays(arrivals, (0, 0), (20, 1), (1020, 2)) == [0, 0, 980]
    assert delays(arrivals, (2020.001, 3), (2050, 4)) == [0, pytest.approx(9.999)]


def test_an_interval_is_half_a_second_from_its_first_frame_on() -> None:
    arrivals = Arrivals()
    times = [100, 349, 598.999, 600, 849.999, 1099.998, 1100.5]
    opens = [
        arrival.opens for arrival in observed(arrivals, *((t, n) for n, t in enumerate(times)))
    ]
    assert opens == [True, False, False, True, False, False, True]


def test_a_quarter_of_a_second_without_a_frame_ends_an_interval_too() -> None:
    arrivals = Arrivals()
    times = [100, 349.999, 600, 700]
    opens = [
        arrival.opens for arrival in observed(arrivals, *((t, n) for n, t in enumerate(times)))
    ]
    assert opens == [True, False, True, False]


def counted(*intervals: tuple[int, ...]) -> DelayHistogram:
    """Each interval with its delays."""
    histogram = DelayHistogram()
    for delays in intervals:
        histogram.open_interval()
        for delay in delays:
            histogram.add(delay)
    return histogram


def test_an_interval_counts_once_with_its_most_delayed_frame() -> None:
    burst = tuple(160_000 - 20_000 * n for n in range(1, 9))
    assert counted(burst).shares()[28] == pytest.approx(1.0)
    # A frame that raises the greatest delay takes those before it along.
    assert counted((0, 12_000, 3_000)).shares()[2] == pytest.approx(1.0)


def test_at_first_a_new_interval_weighs_more_than_later() -> None:
    # Weights 1, 3, 6, 10: (n + 1)(n + 2) / 2.
    assert counted((0,), (12_000,)).shares()[0] == pytest.approx(1 / 4)
    shares = counted((0,), (5_000,), (10_000,), (15_000,)).shares()
    assert shares[:4] == pytest.approx((1 / 20, 3 / 20, 6 / 20, 10 / 20))
    # From the 117th on each leaves 0.983 of what is older.
    histogram = counted(*[(0,)] * 500)
    before = histogram.shares()[0]
    assert before == pytest.approx(1.0)
    histogram.open_interval()
    histogram.add(50_000)
    weight = 1 - 0.983
    assert histogram.shares()[10] == pytest.approx(weight, rel=0.01)


def test_the_quantile_lies_where_95_percent_are_at_or_below() -> None:
    rng = random.Random(5)
    histogram = DelayHistogram()
    for n in range(3000):
        histogram.open_interval()
        histogram.add(rng.randrange(1_200_000))
        shares = histogram.shares()
        cell = histogram.quantile
        assert sum(shares[: cell + 1]) >= 0.95 - 1e-9, n
        assert sum(shares[:cell]) < 0.95 + 1e-9, n
        assert sum(shares) == pytest.approx(1.0)


def test_old_delays_are_forgotten_and_the_weights_stay_bounded() -> None:
    histogram = counted((400_000,))
    assert histogram.quantile == 80
    intervals = 1
    while histogram.quantile == 80:
        histogram.open_interval()
        histogram.add(0)
        intervals += 1
    # 1 of 1 + 3 + 6 + 10 is one twentieth.
    assert intervals == 4
    for _ in range(10_000):
        histogram.open_interval()
        histogram.add(7_000)
    assert histogram.quantile == 1
    assert histogram._total < 1 << 68
    assert max(histogram._cells) < 1 << 68
    # What weighed next to nothing is gone, and so is the search for it.
    assert histogram._top == 1


def test_no_frame_no_share() -> None:
    assert DelayHistogram().shares() == (0.0,) * CELLS


def milliseconds(target: Target) -> float:
    return target.value / 1000


class TestTarget:
    def test_up_at_once_down_by_25_ms_a_second_at_most(self) -> None:
        arrivals, target = Arrivals(), Target()
        sequence = now = 0

        def observe(delay: int) -> None:
            nonlocal sequence, now
            target.observe(arrivals.observe(sequence, now + delay), now + delay)
            sequence, now = sequence + 1, now + 20_000

        for _ in range(100):
            observe(0)
        assert milliseconds(target) == pytest.approx(80 - 25 * 99 * 0.02)
        # Nothing for 200 ms, then all at once.
        for late in range(200_000, -1, -20_000):
            observe(late)
        assert milliseconds(target) == 205
        began = now
        before = target.value
        while milliseconds(target) > 15:
            observe(0)
            assert before - target.value <= 500
            before = target.value
        # It held for as long as that interval weighed a twentieth, and then took 7.6 s.
        assert 7_600_000 < now - began < 15_000_000

    def test_hysteresis_one_late_frame_in_fifteen_seconds_moves_nothing(self) -> None:
        target = Target()
        for n in range(10_000):
            late = n % 750 == 749
            target.observe(Arrival(0, 150_000 if late else 0, n % 25 == 0), n * 20_000)
            if n > 6000:
                assert milliseconds(target) == 15, n

    def test_bounds(self) -> None:
        target = Target()
        for n in range(100):
            target.observe(Arrival(0, 5_000_000, n % 25 == 0), n * 20_000)
        assert milliseconds(target) == 1000
        assert target.quantile == 1_000_000


@pytest.mark.parametrize("frames", [5, 8, 32])
def test_a_burst_asks_for_all_of_its_length(frames: int) -> None:
    buffer = JitterBuffer(0)
    for n in range(2000):
        buffer.insert(Frame(n, b"", 0), (n // frames) * frames * 0.02 + (n % frames) * 0.0005)
    # The first of a burst came this much later than its last, which is half a millisecond a frame
    # behind it.
    wanted = (frames - 1) * 0.0195
    assert wanted < buffer.target <= wanted + 0.005
