"""How many come back, as the server tells it: when, and to whom."""

from __future__ import annotations

import itertools

import pytest

from tenuto.policy import TELL_INTERVAL, WORTH_TELLING, CrowdTeller, Retries, RetryPolicy
from tenuto.policy import return_within as within


def test_a_crowd_takes_as_long_as_the_rate_allows_and_half_as_much_again() -> None:
    assert within(1000, 150.0) == pytest.approx(10.0)
    assert within(0, 150.0) == 0
    assert within(1000, float("inf")) == 0


def test_what_is_no_crowd_is_not_told() -> None:
    teller = CrowdTeller(0.9)
    assert teller.told == 0
    assert not any(teller.due(WORTH_TELLING - 0.01, float(now)) for now in range(100))


def test_a_crowd_is_told_once_and_again_when_it_has_doubled_or_halved() -> None:
    teller = CrowdTeller(0.0)
    assert teller.due(1.0, 0.0)
    assert not teller.due(1.9, 10.0)
    assert teller.due(2.0, 20.0)
    assert not teller.due(1.1, 30.0)
    assert teller.due(0.9, 40.0)  # and is no crowd any more
    assert teller.told == 0
    assert not teller.due(0.1, 50.0)
    assert teller.due(1.2, 60.0)


def test_whoever_is_told_at_the_beginning_is_not_told_again() -> None:
    teller = CrowdTeller(6.0)
    assert teller.told == 6
    assert not teller.due(11.0, 0.0)
    assert teller.due(12.0, 0.0)


def test_a_crowd_that_swells_and_shrinks_at_once_is_not_told_each_time() -> None:
    teller = CrowdTeller(0.0)
    told = [now / 10 for now in range(1000) if teller.due(1.0 + 30 * (now % 2), now / 10)]
    assert len(told) <= 100 / TELL_INTERVAL + 1
    assert all(b - a >= TELL_INTERVAL for a, b in itertools.pairwise(told))


def test_a_window_is_as_wide_as_the_crowd_where_many_were_cut() -> None:
    policy = RetryPolicy()
    assert policy.window(0, first=True, many=True, unheard=2.0, crowd=8.0) == 8
    assert policy.window(5, many=True, crowd=8.0) == 8
    assert policy.window(0, first=True, many=True, unheard=2.0, crowd=0.5) == 2
    assert policy.window(0, many=True, crowd=1000.0) == policy.crowd
    assert policy.window(0, first=True, crowd=8.0) == pytest.approx(0.1)


def test_no_crowd_takes_all_of_the_patience() -> None:
    retries = Retries(RetryPolicy(patience=6.0))
    retries.interrupted(0.0)
    assert retries.next_wait(0.0, 1.0, many=True, crowd=30.0) == pytest.approx(3.0)
    retries = Retries(RetryPolicy(patience=20.0))
    retries.interrupted(0.0)
    assert retries.next_wait(0.0, 1.0, many=True, crowd=30.0) == pytest.approx(10.0)
    assert retries.next_wait(14.0, 1.0, many=True, crowd=30.0) == pytest.approx(3.0)


def test_nobody_waits_who_was_not_interrupted() -> None:
    assert Retries(RetryPolicy()).next_wait(0.0, 0.5) is None
