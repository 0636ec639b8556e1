"""What is heard at a playout delay."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.lab.figures.playout import CURVE, curve, on_repair, runs, share, unheard

INF = math.inf
LATENESS = np.array([0.0, 0.050, 0.060, 0.061, INF, 0.2, 0.0, INF])


def test_late_or_lost_is_what_came_after_its_turn_or_never() -> None:
    assert unheard(LATENESS, 0.060).tolist() == [False, False, False, True, True, True, False, True]
    assert share(LATENESS, 0.060) == 0.5
    assert share(LATENESS, 0.0) == 0.75
    assert share(LATENESS, 1.0) == 0.25


def test_runs_of_what_is_not_heard() -> None:
    assert runs(unheard(LATENESS, 0.060)) == (3, 1)
    assert runs(np.zeros(3, dtype=np.bool_)) == ()
    assert runs(np.ones(3, dtype=np.bool_)) == (3,)


def test_the_curve_goes_from_nothing_to_400_ms() -> None:
    assert CURVE[0] == 0.0
    assert CURVE[-1] == 0.4
    assert len(CURVE) == 81


@given(st.lists(st.floats(0, 0.5) | st.just(INF), min_size=1, max_size=60))
def test_the_curve_is_the_share_at_each_delay_and_falls(values: list[float]) -> None:
    lateness = np.array(values)
    found = curve(np.sort(lateness), CURVE)
    assert found.tolist() == pytest.approx([share(lateness, each) for each in CURVE])
    assert all(after <= before + 1e-12 for before, after in pairwise(found))


def test_a_playout_delay_on_which_repaired_frames_land() -> None:
    assert on_repair(0.100, 0.040)
    assert on_repair(0.060, 0.015)
    assert not on_repair(0.060, 0.040)
    assert not on_repair(0.150, 0.040)
