"""Results as they are read again: what was written, or one line that says what is wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bench.lab.record import (
    Drop,
    Flow,
    Machine,
    ModeNote,
    ProfileNote,
    Results,
    Setting,
    Wave,
    Wire,
)
from bench.lab.report import page, summary
from tenuto.errors import OperatorError

SEED = 20_261_130
MUTATIONS = 300

SETTING = Setting(
    modes=(ModeNote(name="quic-stream", summary="one", reference=False),),
    profiles=(ProfileNote(name="rtt80", summary="", text=""),),
    seeds=(1,),
    seconds=0.06,
    frame_size=640,
    command="tenuto lab",
    started="2026-11-30T20:00:00+00:00",
    versions={"tenuto": "0"},
    driver="tun",
)
WAVE = Wave(profile="rtt80", seeds=(1,), attempt=1, machine=Machine(emulator_p99=0.0001))
FLOW = Flow(
    mode="quic-stream",
    profile="rtt80",
    seed=1,
    wave=0,
    delays=(0.04, None, 0.05),
    handshake=0.09,
    first_audio=0.18,
    down=Wire(packets=5, size=3000, dropped=1),
    drops=(Drop(at=-0.1, way="down", cause="lost"),),
)
RESULTS = Results(setting=SETTING, waves=(WAVE,), flows=(FLOW,), complete=True)


def read(told: object) -> Results:
    return Results.from_json(json.dumps(told), "results.json")


def test_what_was_written_is_read() -> None:
    assert Results.from_json(RESULTS.to_json(), "results.json") == RESULTS


def test_a_profile_is_void_if_none_of_its_waves_counts() -> None:
    bad = replace(WAVE, faults=("too busy",))
    other = replace(WAVE, profile="rtt80-loss5")
    assert replace(RESULTS, waves=(bad, WAVE)).void_profiles() == ()
    assert replace(RESULTS, waves=(bad, other, bad)).void_profiles() == ("rtt80",)
    assert Results(setting=SETTING).void_profiles() == ()


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("flows", 0, "wave"), 1, "flows[0].wave is 1, and there are 1 waves"),
        (("flows", 0, "wave"), -1, "flows[0].wave is -1"),
        (("flows", 0, "delays", 1), "late", 'flows[0].delays[1] is "late", no number'),
        (("flows", 0, "delays", 1), float("nan"), "flows[0].delays[1] is NaN, no number"),
        pytest.param(("flows", 0, "delays", 1), 10**400, "flows[0].delays[1] is 1000", id="huge"),
        (("flows", 0, "delays", 1), -0.1, "flows[0].delays holds one below 0"),
        (("flows", 0, "delays"), [0.04] * 9, "flows[0].delays holds 9, and 4 were due"),
        (("flows", 0, "mode"), 7, "flows[0].mode is 7, no text"),
        (("flows", 0, "seed"), True, "flows[0].seed is true, no number"),
        (("flows", 0, "drops"), {}, "flows[0].drops is {}, no list"),
        (("flows", 0, "new"), 1, "flows[0].new is not known here"),
        (("waves", 0, "machine", "unread"), 0.5, "waves[0].machine.unread is 0.5, no whole"),
        (("setting", "versions"), [], "setting.versions is [], no object"),
        (("setting", "seconds"), 0, "setting.seconds is 0, not above 0"),
        (("setting", "frame_size"), -640, "setting.frame_size is -640"),
        (("setting", "seconds"), 1e9, "setting.seconds is 1e+09"),
        (("complete",), 1, "complete is 1, no true or false"),
        pytest.param(("a" * 999,), 1, f"{'a' * 39}... is not known here", id="long"),
    ],
)
def test_what_does_not_fit_is_named(path: tuple[Any, ...], value: object, words: str) -> None:
    told = json.loads(RESULTS.to_json())
    place = told
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(OperatorError) as refused:
        read(told)
    assert f"results.json cannot be read: {words}" in str(refused.value)


def test_what_is_missing_is_named() -> None:
    told = json.loads(RESULTS.to_json())
    del told["setting"]["seeds"]
    with pytest.raises(OperatorError, match=r"setting\.seeds is missing"):
        read(told)


def _places(told: Any) -> Iterator[tuple[Any, Any]]:
    for at in told if isinstance(told, dict) else range(len(told)):
        yield told, at
        if isinstance(told[at], dict | list):
            yield from _places(told[at])


def test_whatever_is_in_it_there_is_a_report_or_an_error() -> None:
    chance = random.Random(SEED)
    values: list[Any] = [
        None,
        True,
        -1,
        0,
        10**9,
        1e300,
        0.5,
        "",
        "\ud800\x1b[31m",
        [],
        {},
        [None],
        [[]],
    ]
    reports = 0
    for number in range(MUTATIONS):
        told = json.loads(RESULTS.to_json())
        for _ in range(chance.choice([1, 1, 3])):
            place, at = chance.choice(list(_places(told)))
            if chance.random() < 0.2:
                del place[at]
            else:
                place[at] = chance.choice(values)
        try:
            results = read(told)
        except OperatorError:
            continue
        reports += 1
        text = json.dumps(told)
        assert page(results).encode(), f"{SEED}/{number}: {text}"
        assert "\x1b" not in summary(results, 80), f"{SEED}/{number}: {text}"
    assert reports > MUTATIONS // 20
