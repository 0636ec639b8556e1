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
    # 80 ms are lost for good. That counts until the cell with the last of the old offsets, 1.9 to
    # 2 s, is the twentieth before the newest: from 3.9 s on, which is frame 191.
    late = delays(arrivals, *((n * 20 + 80, n) for n in range(100, 300)))
    assert late == [80] * 91 + [0] * 109


def test_a_pause_of_more_than_a_second_begins_anew() -> None:
    arrivals = Arrivals()
    assert delays(arrivals, (0, 0), (20, 1), (1020, 2)) == [0, 0, 980]
    assert delays(arrivals, (2020.001, 3), (2050, 4)) == [0, pytest.approx(9.999)]


def test_frames_that_come_together_are_a_group() -> None:
    arrivals = Arrivals()
    events = [(0, 0), (5, 1), (10.001, 2), (15, 3), (20, 4), (25, 5), (30, 6), (30.002, 7)]
    joins = [arrival.joins for arrival in observed(arrivals, *((at, n) for at, n in events))]
    #        first  5 ms  more   gap   gap   gap   20 ms  too long a group
    assert joins == [False, True, False, True, True, True, True, False]


def counted(*delays: tuple[int, bool]) -> DelayHistogram:
    histogram = DelayHistogram()
    for delay, joins in delays:
        if not joins:
            histogram.open_group()
        histogram.add(delay)
    return histogram


def test_a_group_counts_whole_with_its_most_delayed_frame() -> None:
    burst = [(160_000 - 20_000 * n, n > 0) for n in range(1, 9)]
    burst[0] = (140_000, False)
    shares = counted(*burst).shares()
    assert shares[28] == pytest.approx(1.0)
    # A frame that raises the group's delay takes those before it along.
    assert counted((0, False), (12_000, True)).shares()[2] == pytest.approx(1.0)
    assert counted((0, False), (12_000, False)).shares()[0] == pytest.approx(0.983 / 1.983, 1e-5)


def test_the_quantile_lies_where_95_percent_are_at_or_below() -> None:
    rng = random.Random(5)
    histogram = DelayHistogram()
    for n in range(3000):
        histogram.open_group()
        histogram.add(rng.randrange(1_200_000))
        shares = histogram.shares()
        cell = histogram.quantile
        assert sum(shares[: cell + 1]) >= 0.95 - 1e-9, n
        assert sum(shares[:cell]) < 0.95 + 1e-9, n
        assert sum(shares) == pytest.approx(1.0)


def test_old_delays_are_forgotten_and_the_weights_stay_bounded() -> None:
    histogram = counted((0, False), (400_000, True))
    assert histogram.quantile == 80
    for _ in range(60):
        histogram.open_group()
        histogram.add(0)
    left = 0.983**60 * (1 - 0.983**2) / (1 - 0.983**62)
    assert histogram.shares()[80] == pytest.approx(left, rel=0.001)
    for _ in range(10_000):
        histogram.open_group()
        histogram.add(7_000)
    assert histogram.quantile == 1
    assert histogram._total < 1 << 68
    assert max(histogram._cells) < 1 << 68
    # What weighed next to nothing is gone, and so is the search for it.
    assert histogram._top == 1


def test_a_group_stays_whole_when_the_weights_are_cut() -> None:
    histogram = counted((0, False), *[(300_000, True)] * 5000)
    assert histogram.shares()[60] == pytest.approx(1.0)
    assert histogram.quantile == 60


def test_no_frame_no_share() -> None:
    assert DelayHistogram().shares() == (0.0,) * CELLS


def milliseconds(target: Target) -> float:
    return target.value / 1000


class TestTarget:
    def test_up_at_once_down_by_25_ms_a_second_at_most(self) -> None:
        target = Target()
        now = 0
        for _ in range(100):
            target.observe(Arrival(0, False), now)
            now += 20_000
        assert milliseconds(target) == pytest.approx(80 - 25 * 99 * 0.02)
        for _ in range(20):
            target.observe(Arrival(200_000, False), now)
            now += 20_000
        assert milliseconds(target) == 205
        before = target.value
        while milliseconds(target) > 20:
            target.observe(Arrival(0, False), now)
            now += 20_000
            assert before - target.value <= 500
            before = target.value
        # It held for as long as the 0.95 quantile lay there, and then took 7.4 s.
        assert now > 11_000_000

    def test_hysteresis_one_late_frame_in_a_hundred_moves_nothing(self) -> None:
        target = Target()
        for n in range(5000):
            target.observe(Arrival(150_000 if n % 100 == 50 else 0, False), n * 20_000)
        assert milliseconds(target) == 20

    def test_bounds(self) -> None:
        target = Target()
        for n in range(100):
            target.observe(Arrival(5_000_000, False), n * 20_000)
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
