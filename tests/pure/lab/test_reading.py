"""Results that somebody has changed: what is wrong is told by its place, in one line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.lab.record import Results
from tenuto.errors import OperatorError
from tests.support.lab_results import EXTREMES, MODES, mutilated, results, setting


def told(text: str) -> str:
    with pytest.raises(OperatorError) as raised:
        Results.from_json(text, "results.json")
    return str(raised.value)


def whole() -> dict[str, Any]:
    asked = setting(modes=MODES[:2], seeds=1, seconds=0.1)
    made: dict[str, Any] = json.loads(results(asked=asked).to_json())
    return made


@pytest.mark.parametrize(
    ("path", "wrong", "words"),
    [
        ("setting", [], "setting is [], no object"),
        ("setting.seconds", "20", 'setting.seconds is "20", no number'),
        ("setting.seconds", 0, "setting.seconds is 0, not above 0 and at most 3600"),
        ("setting.seconds", 1e9, "setting.seconds is 1e+09, not above 0 and at most 3600"),
        ("setting.frame_size", 0, "setting.frame_size is 0, less than 1"),
        ("setting.frame_size", 0.5, "setting.frame_size is 0.5, no whole number"),
        ("setting.seeds", 1, "setting.seeds is 1, no list"),
        ("setting.seeds.0", True, "setting.seeds[0] is true, no number"),
        ("setting.modes.1.name", None, "setting.modes[1].name is null, no text"),
        ("setting.modes.1.reference", 1, "setting.modes[1].reference is 1, no true or false"),
        ("setting.versions.aioquic", 1, "setting.versions.aioquic is 1, no text"),
        ("waves.0.machine.send_lag", float("nan"), "waves[0].machine.send_lag is NaN, no number"),
        ("waves.0.machine.unread", 10**20, "waves[0].machine.unread is 1000"),
        ("waves.0.faults", "too busy", 'waves[0].faults is "too busy", no list'),
        ("flows.1.delays.3", "late", 'flows[1].delays[3] is "late", no number'),
        ("flows.1.delays.3", float("inf"), "flows[1].delays[3] is Infinity, no number"),
        ("flows.1.delays.3", -0.1, "flows[1].delays holds one below 0"),
        ("flows.1.wave", 1, "flows[1].wave is 1, and there are 1 waves"),
        ("flows.1.wave", -1, "flows[1].wave is -1, and there are 1 waves"),
        ("flows.1.handshake", -1, "flows[1].handshake is -1, below 0"),
        ("flows.1.up.size", -1, "flows[1].up.size is -1, below 0"),
        ("flows.1.color", "red", "flows[1].color is not known here"),
        ("flows.1.drops", [{"at": 1}], "flows[1].drops[0].way is missing"),
        ("complete", "no" * 50, f'complete is "{"no" * 19}n..., no true or false'),
    ],
)
def test_what_is_wrong_is_named(path: str, wrong: object, words: str) -> None:
    made = whole()
    *before, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    inside: Any = made
    for step in before:
        inside = inside[step]
    inside[last] = wrong
    line = told(json.dumps(made))
    assert line.startswith(f"results.json cannot be read: {words}")
    assert "\n" not in line


def test_more_frames_than_a_machine_holds_are_refused_before_they_are_made() -> None:
    made = whole()
    made["setting"]["seconds"] = 3600
    made["flows"] = made["flows"] * 50
    assert "flows hold 18,000,000 frames, of 10,000,000 at most" in told(json.dumps(made))


def test_what_has_a_default_may_be_missing() -> None:
    made = whole()
    del made["flows"][0]["trouble"]
    assert Results.from_json(json.dumps(made), "results.json").flows[0].trouble is None


@pytest.mark.parametrize("name", ["troubled", "hostile", "empty"])
def test_what_was_written_is_read_as_it_was(name: str) -> None:
    text = EXTREMES[name]().to_json()
    again = Results.from_json(text, "results.json").to_json()
    assert json.loads(again) == json.loads(text)


def test_whatever_is_changed_is_read_or_told() -> None:
    refused = 0
    for path, text in mutilated():
        try:
            Results.from_json(text, "results.json")
        except OperatorError as error:
            refused += 1
            assert "\n" not in str(error), path
    assert refused > 500
