"""When a difference may be called one."""

from __future__ import annotations

import math

import pytest

from bench.lab.figures.catalogue import figure, late_or_lost, opinion
from bench.lab.figures.comparison import Comparison, Verdict, compare

LATE = figure(late_or_lost(0.150))
MOS = figure(opinion(0.150))


def against(
    values: list[float],
    baseline: list[float],
    *,
    shown: str = LATE.name,
    comparisons: int = 1,
    frames: int = 1000,
) -> Comparison:
    return compare(
        figure(shown),
        dict(enumerate(values)),
        dict(enumerate(baseline)),
        comparisons=comparisons,
        frames=frames,
    )


def test_a_clear_difference_over_ten_seeds_has_a_word() -> None:
    base = [0.05 + 0.001 * n for n in range(10)]
    worse = against([each + 0.02 + 0.0005 * (n % 2) for n, each in enumerate(base)], base)
    assert worse.verdict is Verdict.WORSE
    assert worse.word == "worse"
    assert worse.difference.value == pytest.approx(0.02025)
    better = against([each - 0.02 - 0.0005 * (n % 2) for n, each in enumerate(base)], base)
    assert better.word == "better"


def test_a_higher_opinion_is_better() -> None:
    found = against([4.0 + 0.01 * (n % 2) for n in range(10)], [3.5] * 10, shown=MOS.name)
    assert found.word == "better"


def test_bytes_are_more_or_less() -> None:
    found = against([300e3 + n for n in range(10)], [200e3] * 10, shown="down")
    assert (found.verdict, found.word) == (Verdict.WORSE, "more")
    found = against([100e3 + n for n in range(10)], [200e3] * 10, shown="down")
    assert found.word == "less"


def test_nine_pairs_are_too_few_however_clear() -> None:
    found = against([0.9] * 9, [0.1] * 9)
    assert found.verdict is Verdict.TOO_FEW
    assert found.difference.value == pytest.approx(0.8)
    assert against([0.9], [0.1]).verdict is Verdict.TOO_FEW
    assert found.word == "too few seeds"


def test_only_seeds_of_both_are_paired() -> None:
    values = dict.fromkeys(range(5, 20), 0.5)
    baseline = dict.fromkeys(range(10), 0.1)
    found = compare(LATE, values, baseline, comparisons=1, frames=1000)
    assert found.difference.seeds == 5
    assert found.verdict is Verdict.TOO_FEW
    none = compare(LATE, {1: 0.5}, {2: 0.5}, comparisons=1, frames=1000)
    assert none.verdict is Verdict.TOO_FEW


def test_nothing_lost_on_either_side_is_no_difference() -> None:
    found = against([0.0] * 10, [0.0] * 10)
    assert (found.difference.value, found.verdict) == (0.0, Verdict.NOT_SHOWN)
    assert found.word == "no difference shown"


def test_an_interval_that_holds_zero_shows_nothing() -> None:
    found = against([0.01, 0.09] * 5, [0.05, 0.04] * 5)
    assert found.verdict is Verdict.NOT_SHOWN


def test_less_than_a_frame_is_no_difference_however_sure() -> None:
    found = against([0.0105] * 10, [0.0100] * 10, frames=1000)
    assert found.verdict is Verdict.TOO_SMALL
    # One frame in a flow of 1,000 is what is resolved.
    assert against([0.011] * 10, [0.010] * 10, frames=1000).verdict is Verdict.WORSE
    assert against([0.0105] * 10, [0.0100] * 10, frames=2000).verdict is Verdict.WORSE
    found = against([0.1009] * 10, [0.1] * 10, shown="first_audio")
    assert found.verdict is Verdict.TOO_SMALL


def test_many_comparisons_need_a_wider_interval() -> None:
    values, base = [0.02 + 0.01 * n for n in range(10)], [0.02] * 10
    one, seven = against(values, base), against(values, base, comparisons=7)
    assert one.difference.value == seven.difference.value
    # Of the means of all subsets, 25 are left out at each side, and 3.
    assert one.difference.low == pytest.approx(0.0225)
    assert seven.difference.low == pytest.approx(0.010)


def test_more_modes_than_ten_seeds_can_tell_apart_are_not() -> None:
    # The least p of ten pairs is 2/1024.
    assert against([0.9] * 10, [0.1] * 10, comparisons=25).verdict is Verdict.WORSE
    found = against([0.9] * 10, [0.1] * 10, comparisons=26)
    assert found.verdict is Verdict.NOT_SHOWN
    assert (found.difference.low, found.difference.high) == (-math.inf, math.inf)


def test_one_lost_packet_of_a_handshake_does_not_decide() -> None:
    quic = [0.18, 0.18, 0.18, 0.18, 0.80, 0.18, 0.18, 0.18, 0.18, 0.18]
    found = against([0.25] * 10, quic, shown="first_audio")
    assert found.difference.value == pytest.approx(0.07)
    assert found.verdict is Verdict.WORSE


def test_a_difference_may_vanish_in_the_correction() -> None:
    values = [0.004, -0.001, 0.006, 0.002, 0.004, -0.002, 0.005, 0.003, 0.007, -0.001]
    base = [0.05] * 10
    moved = [0.05 + each for each in values]
    assert against(moved, base).verdict is Verdict.WORSE
    assert against(moved, base, comparisons=7).verdict is Verdict.NOT_SHOWN


def test_what_never_came_is_not_subtracted() -> None:
    found = against([math.inf] * 10, [0.2] * 10, shown="first_audio")
    assert found.verdict is Verdict.UNKNOWN
    both = against([math.inf] * 10, [math.inf] * 10, shown="first_audio")
    assert both.verdict is Verdict.UNKNOWN
    assert both.word == "cannot be compared"


def test_no_comparison_at_all_is_no_division_by_zero() -> None:
    assert against([0.1] * 10, [0.1] * 10, comparisons=0).verdict is Verdict.NOT_SHOWN
