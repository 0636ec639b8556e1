"""Lateness above the floor, jitter and silence, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.lab.figures.lateness import floor_of, jitter, late, quantile, scheduled, silence
from bench.lab.record import Flow
from tenuto.media import FRAME_DURATION

INF = math.inf


def flow(*delays: float | None) -> Flow:
    return Flow(mode="m", profile="p", seed=1, wave=0, delays=delays)


def test_the_floor_is_the_smallest_delay_of_any_flow() -> None:
    assert floor_of([flow(0.05, None, 0.07), flow(0.06, 0.041), flow()]) == 0.041
    assert floor_of([flow(None), flow()]) is None


def test_frames_in_so_much_audio() -> None:
    assert scheduled(20.0) == 1000
    assert scheduled(4.0) == 200
    assert scheduled(0.0) == 1


def test_what_never_came_is_infinitely_late_and_stays() -> None:
    values = late((0.140, None, 0.04), 5, 0.04)
    assert values.tolist() == [0.1, INF, 0.0, INF, INF]


def test_a_flow_longer_than_the_schedule_keeps_its_frames() -> None:
    assert len(late((0.1, 0.1, 0.1), 2, 0.1)) == 3


def test_without_a_floor_all_is_infinite() -> None:
    assert late((), 2, None).tolist() == [INF, INF]


def test_lateness_meets_a_threshold_exactly() -> None:
    # 0.14 - 0.04 is a hair above 0.1 as floating point has it.
    assert late((0.14,), 1, 0.04)[0] <= 0.100


def test_quantiles_are_values_that_occurred() -> None:
    ascending = np.array([1.0, 2.0, 3.0, 4.0, INF])
    assert quantile(ascending, 0.0) == 1.0
    assert quantile(ascending, 0.2) == 1.0
    assert quantile(ascending, 0.21) == 2.0
    assert quantile(ascending, 0.6) == 3.0  # 0.6 * 5 is a hair above 3 as floating point has it
    assert quantile(ascending, 0.8) == 4.0
    assert quantile(ascending, 0.81) == INF
    assert quantile(ascending, 1.0) == INF


@given(
    st.lists(st.floats(0, 5) | st.just(INF), min_size=1, max_size=60),
    st.floats(0.0001, 1.0),
)
def test_no_smaller_value_has_the_fraction_at_or_below_it(
    values: list[float], fraction: float
) -> None:
    ascending = np.sort(np.array(values))
    found = quantile(ascending, fraction)
    assert np.mean(ascending <= found) >= fraction - 1e-6
    assert np.mean(ascending < found) < fraction + 1e-6


def test_jitter_by_the_formula_of_rfc_3550() -> None:
    # D: 16 ms, 0, -16 ms. J: 1, 1 - 1/16, 0.9375 + (16 - 0.9375)/16 ms; the mean of the three.
    values = np.array([0.0, 0.016, 0.016, 0.0])
    after = [0.001, 0.0009375, 0.0009375 + (0.016 - 0.0009375) / 16]
    assert jitter(values) == pytest.approx(sum(after) / 3)


def test_jitter_is_of_the_order_of_arrival() -> None:
    # Frame 0 comes 30 ms late, after frame 1: it is frame 1 first, then frame 0.
    assert jitter(np.array([0.030, 0.0])) == pytest.approx(0.030 / 16)
    assert jitter(np.array([0.010, 0.0, INF, 0.0])) == pytest.approx(
        (0.010 / 16) * (1 + 15 / 16) / 2
    )


def test_jitter_needs_two_arrivals() -> None:
    assert math.isnan(jitter(np.array([0.0, INF])))
    assert math.isnan(jitter(np.array([INF])))


def test_jitter_does_not_see_what_never_came() -> None:
    # Why it is never shown alone.
    assert jitter(np.array([0.0, INF, INF, 0.0, INF, 0.0])) == 0.0


def test_silence_between_arrivals_at_the_start_and_at_the_end() -> None:
    assert silence(np.zeros(4)) == pytest.approx(FRAME_DURATION)
    # Frames 1 and 2 come together with frame 3.
    assert silence(np.array([0.0, 0.04, 0.02, 0.0])) == pytest.approx(0.060)
    # Begins with the third frame.
    assert silence(np.array([INF, INF, 0.005, 0.0, 0.0])) == pytest.approx(0.045)
    # Ends after the first one.
    assert silence(np.array([0.0, INF, INF, INF])) == pytest.approx(0.060)
    # Nothing at all: as long as the schedule.
    assert silence(np.array([INF, INF, INF])) == pytest.approx(0.040)
    # The last one comes long after the end.
    assert silence(np.array([0.0, 0.0, 1.0])) == pytest.approx(1.020)


@given(st.lists(st.floats(0, 2) | st.just(INF), min_size=1, max_size=50))
def test_silence_is_bounded_by_the_whole(values: list[float]) -> None:
    lateness = np.array(values)
    finite = [value for value in values if value < INF]
    longest = (len(values) - 1) * FRAME_DURATION + max(finite, default=0.0)
    assert 0.0 <= silence(lateness) <= longest + 1e-6
