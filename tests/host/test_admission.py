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
    assert told == [
        ConnectionRefused("tcp", "3 guests are in from one address"),
        ConnectionRefused("tcp", "5 guests are in"),
    ]
    admission.leave("b")
    assert admission.admit("c")
    assert not admission.admit("d")
    assert len(told) == 3


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
