"""Intervals of differences against the tests that they invert, done naively."""

from __future__ import annotations

import itertools
import math
import random
from statistics import fmean, median

import pytest

from bench.lab.figures.intervals import Ground
from bench.lab.figures.paired import mean_difference, median_difference


def flips(pairs: list[float]) -> float:
    """The two-sided p of the sign-flip test: all the signs that there are."""
    seen = abs(sum(pairs))
    signs = list(itertools.product((1, -1), repeat=len(pairs)))
    as_far = sum(
        abs(sum(sign * pair for sign, pair in zip(each, pairs, strict=True))) >= seen - 1e-9
        for each in signs
    )
    return as_far / len(signs)


def coins(pairs: list[float]) -> float:
    """The two-sided p of the sign test; no pair is 0."""
    fewer = min(sum(pair > 0 for pair in pairs), sum(pair < 0 for pair in pairs))
    tail: float = sum(math.comb(len(pairs), each) for each in range(fewer + 1)) / 2 ** len(pairs)
    return min(1.0, 2 * tail)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("confidence", [0.95, 1 - 0.05 / 7])
def test_what_leaves_out_0_is_what_the_tests_reject(seed: int, confidence: float) -> None:
    rng = random.Random(seed)
    pairs = [rng.lognormvariate(0, 1.2) - rng.choice((0.2, 0.6, 1.2)) for _ in range(10)]
    for find, p in ((mean_difference, flips(pairs)), (median_difference, coins(pairs))):
        found = find(pairs, confidence=confidence)
        assert (not found.low <= 0 <= found.high) is (p <= 1 - confidence), f"{seed}: {p}"
        assert found.low <= found.value <= found.high
        assert (found.seeds, found.ground) == (10, Ground.SEEDS)


def test_by_hand() -> None:
    # The means of subsets of 1, 2, 6 are 1, 1.5, 2, 3, 3.5, 4 and 6: one of eight left out at
    # each side of them keeps 3/4.
    found = mean_difference([2.0, 6.0, 1.0], confidence=0.75)
    assert (found.value, found.low, found.high) == (3.0, 1.0, 6.0)
    found = mean_difference([2.0, 6.0, 1.0], confidence=0.5)
    assert (found.value, found.low, found.high) == (3.0, 1.5, 4.0)
    # Of ten, the second and the last but one: 1 - 2 * 11/1024 = 0.979.
    ten = [float(each) for each in range(1, 11)]
    found = median_difference(ten, confidence=0.95)
    assert (found.value, found.low, found.high) == (5.5, 2.0, 9.0)
    assert median_difference(ten, confidence=0.99).low == 1.0


def test_a_stall_in_one_seed_does_not_hide_what_all_seeds_show() -> None:
    # Ten times worse; Student's t has 0 in its interval.
    pairs = [0.02, 0.03, 0.02, 0.04, 0.03, 0.02, 0.9, 0.03, 0.02, 0.05]
    assert mean_difference(pairs, confidence=1 - 0.05 / 7).low > 0


def test_too_few_pairs_have_no_bounds() -> None:
    for find in (mean_difference, median_difference):
        found = find([0.5] * 5, confidence=0.95)
        assert (found.value, found.low, found.high) == (0.5, -math.inf, math.inf)
        assert (found.seeds, found.ground) == (5, Ground.NOTHING)
        assert find([0.5] * 6, confidence=0.95).low == 0.5
        none = find([], confidence=0.95)
        assert (none.seeds, none.ground) == (0, Ground.NOTHING)
        assert math.isnan(none.value)


def test_what_never_came_is_counted_and_not_subtracted() -> None:
    for find in (mean_difference, median_difference):
        found = find([0.1] * 8 + [math.inf, math.nan], confidence=0.95)
        assert (found.seeds, found.infinite, found.ground) == (9, 1, Ground.NOTHING)
        assert math.isnan(found.value)


def test_differences_that_cancel_are_none() -> None:
    # 0.1 + 0.2 - 0.3 is a hair above 0 as floating point has it.
    for find in (mean_difference, median_difference):
        assert find([0.1 + 0.2 - 0.3] * 10, confidence=0.95).low == 0.0


def test_many_pairs_draw_their_subsets_and_the_same_ones_again() -> None:
    rng = random.Random(3)
    pairs = [rng.gauss(1.0, 1.0) for _ in range(40)]
    found = mean_difference(pairs, confidence=0.95)
    assert found == mean_difference(pairs, confidence=0.95)
    assert found.value == fmean(pairs)
    # As Student's t has it, where there are so many and they are even.
    error = 2.0227 * (sum((each - found.value) ** 2 for each in pairs) / 39 / 40) ** 0.5
    assert found.low == pytest.approx(found.value - error, abs=0.06)
    assert found.high == pytest.approx(found.value + error, abs=0.06)
    assert median_difference(pairs, confidence=0.95).value == median(pairs)


def test_two_alike_are_told_apart_no_more_often_than_said() -> None:
    """Of 1,500 comparisons of shares as skew as those of TCP, 5 % at most, and not hardly any."""
    rng = random.Random(11)
    called = {mean_difference: 0, median_difference: 0}
    for _ in range(1500):
        pairs = [rng.lognormvariate(0, 1.2) - rng.lognormvariate(0, 1.2) for _ in range(10)]
        for find in called:
            found = find(pairs, confidence=0.95)
            called[find] += not found.low <= 0 <= found.high
    assert 0.03 < called[mean_difference] / 1500 < 0.065
    assert 0.01 < called[median_difference] / 1500 < 0.035
