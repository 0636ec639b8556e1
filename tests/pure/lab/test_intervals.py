"""Student's t against published tables, and intervals that stay honest at the ends."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.lab.figures.intervals import Ground, estimate, share_estimate, t_quantile, typical

TABLE = [  # two-sided, NIST/SEMATECH e-Handbook, section 1.3.6.7.2
    (0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 3, 3.182), (0.95, 4, 2.776), (0.95, 5, 2.571),
    (0.95, 9, 2.262), (0.95, 10, 2.228), (0.95, 19, 2.093), (0.95, 30, 2.042), (0.95, 99, 1.984),
    (0.90, 9, 1.833), (0.99, 1, 63.657), (0.99, 9, 3.250), (0.99, 20, 2.845), (0.998, 9, 4.297),
]  # fmt: skip


@pytest.mark.parametrize(("confidence", "freedom", "published"), TABLE)
def test_the_quantiles_are_the_published_ones(
    confidence: float, freedom: int, published: float
) -> None:
    assert t_quantile(confidence, freedom) == pytest.approx(published, abs=0.0006)


@given(st.floats(0.5, 0.9999), st.integers(1, 60))
def test_more_seeds_need_less_and_more_confidence_more(confidence: float, freedom: int) -> None:
    assert t_quantile(confidence, freedom + 1) < t_quantile(confidence, freedom)
    assert t_quantile(confidence, freedom) > t_quantile(confidence - 0.1, freedom)


def test_an_interval_by_hand() -> None:
    # Mean 3, sd 1.581139, sqrt(5): 2.776445 * 0.707107.
    found = estimate([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.value == 3.0
    assert found.low == pytest.approx(3 - 1.963243, abs=1e-6)
    assert found.high == pytest.approx(3 + 1.963243, abs=1e-6)
    assert (found.seeds, found.infinite, found.ground) == (5, 0, Ground.SEEDS)


def test_bounds_hold() -> None:
    found = estimate([0.0, 0.1, 0.0], bounds=(0.0, 0.05))
    assert found.low == 0.0
    assert found.high == 0.05
    # The mean stays inside of its interval, whatever the bounds.
    assert estimate([0.5, 0.7], bounds=(0.0, 0.1)).high == pytest.approx(0.6)


def test_one_seed_has_no_interval() -> None:
    found = estimate([2.0])
    assert (found.value, found.ground) == (2.0, Ground.NOTHING)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_what_never_came_is_counted() -> None:
    found = estimate([1.0, math.inf, math.inf])
    assert (found.value, found.seeds, found.infinite) == (math.inf, 3, 2)
    assert found.ground is Ground.NOTHING


def test_no_value_is_no_value() -> None:
    assert estimate([math.nan, 2.0, 4.0]).value == 3.0
    nothing = estimate([math.nan])
    assert math.isnan(nothing.value)
    assert (nothing.seeds, nothing.ground) == (0, Ground.NOTHING)
    assert share_estimate([math.nan], 100).seeds == 0


def test_nothing_lost_is_bounded_by_the_frames() -> None:
    found = share_estimate([0.0] * 10, 10_000)
    assert (found.value, found.low, found.ground) == (0.0, 0.0, Ground.FRAMES)
    # The rule of three.
    assert found.high == pytest.approx(3 / 10_000, rel=0.01)
    assert share_estimate([0.0], 1000).high == pytest.approx(3 / 1000, rel=0.01)


def test_everything_lost_is_bounded_by_the_frames() -> None:
    found = share_estimate([1.0, 1.0], 200)
    assert (found.value, found.high, found.ground) == (1.0, 1.0, Ground.FRAMES)
    assert found.low == pytest.approx(1 - 3 / 200, abs=0.001)


def test_seeds_that_agree_say_nothing_about_their_spread() -> None:
    # Wilson by hand: 10 of 200 at 1.959964.
    found = share_estimate([0.05, 0.05], 200)
    assert found.ground is Ground.FRAMES
    assert found.low == pytest.approx(0.027378, abs=1e-5)
    assert found.high == pytest.approx(0.089578, abs=1e-5)


def test_one_seed_of_some_loss_has_no_interval() -> None:
    assert share_estimate([0.05], 1000).ground is Ground.NOTHING


def test_a_share_of_seeds_that_differ_is_students() -> None:
    found = share_estimate([0.0, 0.02], 200)
    assert (found.ground, found.low) == (Ground.SEEDS, 0.0)
    assert found.high == pytest.approx(0.01 + 12.706 * 0.01, abs=1e-4)


@given(st.lists(st.integers(0, 50).map(lambda n: n / 50), min_size=1, max_size=20))
def test_a_share_stays_a_share(values: list[float]) -> None:
    found = share_estimate(values, 50 * len(values))
    if found.ground is not Ground.NOTHING:
        assert 0.0 <= found.low <= found.value <= found.high <= 1.0


def test_a_skew_sample_has_a_longer_side_by_hand() -> None:
    # Mean 2, sd 3.162278, sum of cubes 720 / 10 / sd^3 = 2.276840, over the root of 10 0.72.
    found = estimate([1.0] * 9 + [11.0])
    t = 2.262157
    assert found.low == pytest.approx(2 - t, abs=1e-6)
    cubic = 3 / 0.72 * (math.cbrt(1 + 0.72 * (-t - 0.72 / 6)) - 1)
    assert found.high == pytest.approx(2 - cubic, abs=1e-5)
    assert -cubic > 2 * t
    # The mirror image.
    mirrored = estimate([-1.0] * 9 + [-11.0])
    assert (mirrored.low, mirrored.high) == (-found.high, -found.low)


def test_the_median_with_the_least_and_the_worst() -> None:
    found = typical([0.18, 0.80, 0.17, 0.19])
    assert (found.value, found.low, found.high) == (pytest.approx(0.185), 0.17, 0.80)
    assert (found.seeds, found.infinite, found.ground) == (4, 0, Ground.RANGE)
    some = typical([0.2, math.inf, 0.1])
    assert (some.value, some.high, some.infinite) == (0.2, math.inf, 1)
    assert typical([math.inf, math.inf, 0.1]).value == math.inf
    assert typical([0.1, math.inf]).value == math.inf
    assert typical([0.2]).ground is Ground.NOTHING
    assert math.isnan(typical([math.nan]).value)


def covered(draw: Callable[[], float], truth: float) -> float:
    held = 0
    for _ in range(800):
        found = estimate([draw() for _ in range(10)], bounds=(0.0, 1.0))
        held += found.low <= truth <= found.high
    return held / 800


def test_intervals_cover_what_they_say() -> None:
    rng = random.Random(5)
    assert covered(lambda: rng.gauss(0.3, 0.1), 0.3) == pytest.approx(0.95, abs=0.02)


def test_intervals_of_skew_shares_cover_most() -> None:
    """Student's t alone holds the mean in 87 and in 80 % of these."""
    rng = random.Random(6)
    some = covered(lambda: rng.lognormvariate(math.log(0.04), 0.8), 0.04 * math.exp(0.32))
    assert some == pytest.approx(0.915, abs=0.025)
    more = covered(lambda: rng.lognormvariate(math.log(0.02), 1.2), 0.02 * math.exp(0.72))
    assert more == pytest.approx(0.875, abs=0.03)
