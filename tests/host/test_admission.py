"""Bounds on who is inside, filled to the brim."""

from __future__ import annotations

import pytest

from tenuto.host import Admission
from tenuto.telemetry.events import ConnectionRefused, Event


def test_both_bounds_are_kept_and_each_episode_is_told_once() -> None:
    told: list[Event] = []
    admission = Admission("tcp", "guests are in", most=5, most_per_address=3, on_event=told.append)
    assert [admission.admit("a") for _ in range(5)] == [True] * 3 + [False] * 2
    assert [admission.admit("b") for _ in range(4)] == [True] * 2 + [False] * 2
    assert (len(admission), admission.refused) == (5, 4)
    assert told == [ConnectionRefused("tcp", "3 guests are in from one address")]
    admission.leave("a")
    assert admission.admit("c")
    assert not admission.admit("d")
    assert told[1:] == [ConnectionRefused("tcp", "5 guests are in")]


def test_addresses_that_left_or_were_refused_are_forgotten() -> None:
    admission = Admission("q", "x", most=2, most_per_address=2, on_event=lambda event: None)
    for number in range(1000):
        admission.admit(f"10.0.0.{number}")
    for number in range(2):
        admission.leave(f"10.0.0.{number}")
    assert len(admission) == 0
    assert len(admission._inside) == 0
    with pytest.raises(ValueError, match=r"10\.0\.0\.7"):
        admission.leave("10.0.0.7")


def test_an_episode_lasts_until_a_tenth_is_free() -> None:
    told: list[Event] = []
    admission = Admission("q", "x", most=100, most_per_address=100, on_event=told.append)
    assert all(admission.admit("a") for _ in range(100))
    for _ in range(9):
        assert not admission.admit("a")
        admission.leave("a")
        assert admission.admit("a")
    assert len(told) == 1
    for _ in range(10):
        admission.leave("a")
    assert all(admission.admit("b") for _ in range(10))
    assert not admission.admit("b")
    assert len(told) == 2
