"""How long QUIC is left alone where it failed."""

from __future__ import annotations

import pytest

from tenuto.policy import FIRST_COOL_DOWN, LONGEST_COOL_DOWN, CoolDown


def test_it_doubles_each_time_up_to_an_hour() -> None:
    now, known, waits = 1000.0, CoolDown(), []
    for _ in range(8):
        known = known.failed(now)
        waits.append(known.left(now))
        now += known.left(now)
    assert waits == [300, 600, 1200, 2400, 3600, 3600, 3600, 3600]
    assert (FIRST_COOL_DOWN, LONGEST_COOL_DOWN) == (300, 3600)


def test_what_fails_meanwhile_fails_for_the_same_reason() -> None:
    once = CoolDown().failed(0.0)
    assert once.failed(299.0) == once
    assert once.failed(300.0).left(300.0) == 600


def test_nothing_is_left_of_none_or_of_what_is_over() -> None:
    assert CoolDown().left(5.0) == 0
    assert CoolDown(1, 10.0).left(4.0) == 6
    assert CoolDown(1, 10.0).left(10.0) == 0


@pytest.mark.parametrize("until", [1e9, float("inf"), float("nan")])
def test_a_clock_that_was_set_back_does_not_make_it_last(until: float) -> None:
    known = CoolDown(3, until)
    assert known.left(0.0) == 0
    assert known.failed(0.0).left(0.0) == 2400


def test_a_scaled_one_doubles_too_and_counts_without_end() -> None:
    assert CoolDown().failed(0.0, 2.0).left(0.0) == 2
    assert CoolDown(1, 0.0).failed(0.0, 2.0).left(0.0) == 4
    assert CoolDown(10_000, 0.0).failed(0.0, 2.0).left(0.0) == 3600
