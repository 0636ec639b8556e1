"""Modes by name, and how another one joins."""

from __future__ import annotations

import pytest

from bench.lab.modes import MODES, Mode, choose, register
from tenuto.errors import OperatorError


def test_what_there_is_stands_from_the_start() -> None:
    assert next(iter(MODES)) == "quic-stream"
    assert [name for name, mode in MODES.items() if not mode.reference] == [
        "quic-stream",
        "tcp-cubic",
        "tcp-bbr",
    ]
    assert {mode.congestion for mode in MODES.values()} == {"cubic", "bbr"}


def test_modes_are_chosen_by_name_in_the_order_of_the_registry() -> None:
    assert [mode.name for mode in choose(("ref-streams", "quic-stream", "ref-streams"))] == [
        "quic-stream",
        "ref-streams",
    ]
    assert choose(()) == tuple(MODES.values())


def test_a_name_that_is_none_is_answered_by_the_nearest() -> None:
    with pytest.raises(OperatorError, match="'ref-stream'. did you mean ref-streams"):
        choose(("ref-stream",))
    with pytest.raises(OperatorError, match="there are quic-stream, tcp-cubic"):
        choose(("9",))


def test_another_mode_joins_by_one_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.lab.modes.MODES", dict(MODES))
    made = register(Mode(name="wt-groups", summary="made up", listener="tests.lab.made_up:listen"))
    assert choose(("wt-groups", "tcp-bbr"))[-1] is made
    assert made.note().name == "wt-groups"
    with pytest.raises(ValueError, match="two modes are called wt-groups"):
        register(made)
