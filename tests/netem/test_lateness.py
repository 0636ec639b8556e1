"""The histogram of the emulator's own lateness."""

from __future__ import annotations

import pytest

from netem.lateness import Histogram


def test_nothing_yet() -> None:
    assert Histogram().summary() == {"count": 0, "p50": 0.0, "p99": 0.0, "max": 0.0, "mean": 0.0}


def test_quantiles_are_right_within_a_step() -> None:
    histogram = Histogram()
    for number in range(1, 1001):
        histogram.add(number / 1e5)
    told = histogram.summary()
    assert told["count"] == 1000
    assert told["p50"] == pytest.approx(0.005, abs=2e-5)
    assert told["p99"] == pytest.approx(0.0099, abs=2e-5)
    assert told["max"] == 0.01
    assert told["mean"] == pytest.approx(0.005005)


def test_what_is_beyond_the_last_bin_counts_as_the_latest() -> None:
    histogram = Histogram()
    for lateness in (0.00001, 7.0, 9.0):
        histogram.add(lateness)
    assert histogram.quantile(0.5) == histogram.quantile(0.99) == 9.0
