"""`link`: its arithmetic by plain numbers, and a small run of the whole."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.link import Plan, measure
from bench.link_ceiling import blame, search
from bench.link_end import Ages, Outcome, ages_of
from bench.link_figures import Cell, added, ceiling, faults, latency, skipped, summarise
from bench.link_roads import Counts
from bench.link_table import main, tables
from bench.link_turns import Load, Turn
from netem.drivers.report import Lateness

LOAD = Load(rate=100_000.0, both=False, size=72, seconds=0.4, delay=0.03)
CEILING = Cell(figure="ceiling", road="tun", profile="loss5-30", flows=1, size=100, ways=1)
LATENCY = Cell(figure="latency", road="tun", profile="clear30", flows=100, size=172, ways=2)
NONE = Ages(p50=None, p99=None, p999=None, max=None)


def ages(base: float) -> Ages:
    return Ages(p50=base, p99=base + 0.001, p999=base + 0.002, max=base + 0.003)


def end(*, sent: int = 0, received: int = 0, **other: Any) -> Outcome:
    values: dict[str, Any] = {
        "sent": sent,
        "refused": 0,
        "received": received,
        "age": ages(0.030) if received else NONE,
        "last_age": 0.030 if received else None,
        "late": ages(-0.0005) if sent else NONE,
        "unread": NONE,
        "cpu": 0.1,
        "stepped": 0.0,
    }
    return Outcome(**{**values, **other})


def turn(
    *,
    sent: int = 40_000,
    missing: int = 0,
    last_age: float = 0.031,
    emulator: float = 0.5,
    others: float = 0.1,
    rate: float = 100_000.0,
    counts: Counts | None = None,
    client: Outcome | None = None,
) -> Turn:
    """40,000 packets up, of which the profile lost 2,000."""
    told = Counts(lost=2_000, lateness=Lateness(count=1, p99=0.0001, max=0.001))
    return Turn(
        load=replace(LOAD, rate=rate),
        client=client or end(sent=sent),
        server=end(received=sent - 2_000 - missing, last_age=last_age),
        counts=counts or told,
        emulator=emulator,
        others=others,
    )


def test_a_percentile_is_told_only_where_there_are_values_beyond_it() -> None:
    found = ages_of(array("q", [n * 1_000_000 for n in range(999, -1, -1)]))
    assert found == Ages(p50=0.5, p99=0.99, p999=0.999, max=0.999)
    assert ages_of(array("q", [5_000] * 99)) == Ages(p50=5e-6, p99=None, p999=None, max=5e-6)
    assert ages_of(array("q")) == NONE


def test_what_the_profile_takes_is_no_unintended_loss() -> None:
    assert turn().unintended == 0.0
    assert turn(missing=400).unintended == 0.01


LATE = Counts(lost=2_000, behind=0.02, lateness=Lateness(count=1))
DROPPED = Counts(lost=2_000, undelivered=400, lateness=Lateness(count=1))
BACKLOG = Counts(lost=2_000, backlog=400, lateness=Lateness(count=1))
RELAY = Counts(lost=2_000)


@pytest.mark.parametrize(
    ("what", "who"),
    [
        (turn(), None),
        (turn(missing=40), None),
        (turn(sent=39_000), "generator"),
        (turn(missing=41), "receiver"),
        (turn(last_age=0.041), "receiver"),
        (turn(missing=400, counts=DROPPED), "emulator"),
        (turn(last_age=0.05, counts=LATE), "emulator"),
        (turn(counts=LATE), None),
        (turn(missing=400, counts=BACKLOG), "kernel"),
        (turn(last_age=0.05, counts=RELAY, emulator=0.9), "emulator"),
        (turn(last_age=0.05, counts=RELAY, emulator=0.5), "receiver"),
    ],
)
def test_who_stopped_it_is_told(what: Turn, who: str | None) -> None:
    assert blame(what) == who


def link_of(most: float) -> Callable[[float], Turn]:
    """A link that takes `most` packets a second."""

    def attempt(rate: float) -> Turn:
        sent = int(rate * LOAD.seconds)
        counts = DROPPED if rate > most else None
        return turn(sent=sent, rate=rate, missing=sent // 10 if rate > most else 0, counts=counts)

    return attempt


@pytest.mark.parametrize("most", [20_000.0, 99_000.0, 100_000.0, 180_000.0, 500_000.0])
@pytest.mark.parametrize("again", [False, True])
def test_the_ceiling_is_found_from_below_and_from_above(most: float, again: bool) -> None:
    found = search(link_of(most), 100_000.0, most=12, again=again)
    assert found.best is not None
    assert most / 1.08 <= found.best.load.rate <= most
    assert found.stopped is not None
    assert found.by == "emulator"


def test_a_search_ends_without_a_clean_rate_or_without_another() -> None:
    found = search(link_of(1.0), 100_000.0, most=3, again=False)
    assert (found.best, found.by, len(found.turns)) == (None, "emulator", 3)
    line = ceiling(CEILING, found, 300_000.0)
    assert (line["packets_per_second"], line["ratio_to_peer"]) == (None, None)
    found = search(link_of(1e9), 100_000.0, most=3, again=True)
    assert (found.stopped, found.by, len(found.turns)) == (None, None, 3)
    assert ceiling(CEILING, found, 312_500.0)["ratio_to_peer"] == 0.5


def test_one_hiccup_of_the_machine_is_no_ceiling() -> None:
    calls = iter(range(100))

    def attempt(rate: float) -> Turn:
        return link_of(1.0 if next(calls) == 0 else 150_000.0)(rate)

    found = search(attempt, 100_000.0, most=12, again=True)
    assert found.best is not None
    assert found.best.load.rate > 138_000.0


def test_a_late_generator_is_told_from_a_late_link() -> None:
    assert faults(turn()) == []
    assert faults(turn(client=end(sent=40_000, late=ages(0.0005)))) == ["generator"]
    assert faults(turn(client=end(sent=40_000, refused=1))) == ["generator"]
    assert faults(turn(client=end(sent=40_000, unread=ages(0.01)))) == ["receiver"]
    assert faults(turn(client=end(sent=40_000, stepped=-0.001))) == ["clock"]
    assert faults(turn(others=0.6, missing=400)) == ["machine", "loss"]
    assert faults(turn(counts=Counts(lost=2_000, unread=1))) == ["receiver"]


def test_added_delay_is_above_the_profile_and_above_the_peer() -> None:
    assert added(ages(0.0305), 0.03) == {"p50": 0.5, "p99": 1.5, "p99.9": 2.5, "max": 3.5}
    both = replace(turn(), client=end(sent=40_000, received=10))
    bare = replace(
        both, client=end(received=10, age=ages(0.0001)), server=end(received=10, age=ages(0.0002))
    )
    line: Any = latency(LATENCY, both, bare)
    assert line["up"]["above_peer_ms"]["p50"] == -0.2
    assert line["down"]["above_peer_ms"]["p99"] == -0.1
    assert line["invalid"] == []


def test_a_table_says_what_was_not_measured_and_what_is_invalid() -> None:
    found = search(link_of(120_000.0), 100_000.0, most=12, again=False)
    busy = search(lambda rate: turn(rate=rate, sent=1, others=1.0), 1e5, most=2, again=False)
    lines = [
        ceiling(CEILING, found, 300_000.0),
        ceiling(replace(CEILING, ways=2), busy, None),
        skipped(replace(CEILING, road="veth"), "refused"),
        latency(LATENCY, replace(turn(others=0.6), client=end(sent=9, received=9)), None),
        skipped(replace(LATENCY, first=False), "refused"),
        {
            "figure": "pure",
            "profile": "clear",
            "ratio_to_heapq": {"median": 3.21},
            "offers_per_second": 1_200_000,
        },
    ]
    assert tables(summarise(lines)) == [
        "| road, profile | 100 B, one way | 100 B, both ways |",
        "|---|---|---|",
        "| tun, loss5-30 | 118 (0.39) | none clean (generator, **invalid**) |",
        "| veth, loss5-30 | not measured |  |",
        "",
        "| road | flows, payload | up | down | emulator late p50 / p99 / max | emulator CPU "
        "| generator late p99 |",
        "|---|---|---|---|---|---|---|",
        "| tun, clear30 | 100, 172 B | 0.000 / 1.000 / 2.000 | 0.000 / 1.000 / 2.000 "
        "| 0.000 / 0.100 / 1.000 | 50.0 % | 0.5 **invalid: machine** |",
        "| tun, clear30, ordinary priority | 100, 172 B | not measured | | | | |",
        "",
        "| profile | ratio to heapq | offers a second |",
        "|---|---|---|",
        "| clear | 3.2 | 1,200,000 |",
    ]


@pytest.mark.parametrize(
    "text", ["", "rubbish", '{"bench": "ring", "summary": true}', '{"bench": "link"}',
             '{"bench": "link", "summary": true}',
             '{"bench": "link", "summary": true, "ceiling": [5], "latency": [], "pure": []}'],
)  # fmt: skip
def test_a_table_of_something_else_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(text)
    assert main([str(file)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"{file} cannot be used: ")


SMALL = Plan(
    ceilings=(
        ("empty", ("",), (100,), (1,), 1),
        ("veth", ("clear",), (100,), (2,), 1),
        ("tun", ("loss5-30",), (100,), (1,), 1),
        ("relay", ("clear",), (200,), (2,), 3),
    ),
    latencies=(
        ("empty", "", 10, 172, True),
        ("tun", "clear30", 10, 172, False),
        ("relay", "clear30", 10, 172, True),
    ),
    turn=0.05,
    most=2,
    again=False,
    steady=0.3,
)


def test_a_small_run_measures_every_road(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines: list[Any] = list(measure(SMALL, quick=True))
    assert [line["figure"] for line in lines] == ["pure"] * 8 + ["ceiling"] * 4 + ["latency"] * 3
    for line in lines[:8]:
        assert line["offers_per_second"] > 10_000
    for line in lines[8:]:
        if "not_measured" in line:  # Without privileges only the relay can be.
            assert line["road"] not in ("relay", "loopback")
            continue
        if line["figure"] == "ceiling":
            at = line["at_best"]
            assert at["sent"] > 0
            assert (at["lost_by_profile"] > 0) == (line["profile"] == "loss5-30")
            continue
        assert (line["sent"], line["lost_by_profile"]) == (300, 0)
        for way in ("up", "down"):
            assert line[way]["received"] == 150
            assert -0.1 < line[way]["added_ms"]["p50"] < 200.0
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps(summarise(lines)))
    assert main([str(file)]) == 0
    assert capsys.readouterr().out.count("\n") == 23
