"""`first_audio`: its arithmetic by plain numbers, and a small run of the whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.first_audio import Plan, measure
from bench.first_audio_figures import Cell, compare, describe, percentile, skipped, summarise
from bench.load import Outcome, Usage
from bench.report import Figures
from bench.table import main, table

CELL = Cell("quic", "frames", 10, "tenuto")


def outcome(
    *,
    server: float = 0.5,
    generator: float = 0.2,
    others: float = 0.1,
    late: float = 0.001,
    frames: int = 500,
) -> Outcome:
    """A second of ten listeners."""
    return Outcome(
        handshake=[0.002] * 10,
        first=[0.003] * 10,
        connect_to_first=[0.005] * 10,
        gaps=[0.020] * frames,
        lateness=[late] * frames,
        frames=frames,
        missing=1,
        duplicates=2,
        silent=0,
        troubles=[],
        usage=Usage(1.0, server, generator, server + generator + others),
    )


def line_of(*rounds: Outcome) -> Figures:
    return describe(CELL, 1.0, rounds, load_average=1.5, cores=2)


def test_a_percentile_is_told_only_where_there_are_values_beyond_it() -> None:
    values = [n / 1000 for n in range(1000)]
    assert percentile(values, 0.5) == 500.0
    assert percentile(values, 0.99) == 990.0
    assert percentile(values, 0.999) == 999.0
    assert percentile(values[:99], 0.99) is None
    assert percentile([0.004], 0.5) == 4.0
    assert percentile([], 0.5) is None


def test_rounds_are_put_together() -> None:
    line = line_of(outcome(), outcome(server=0.7))
    assert line["frames"] == 1000
    assert (line["missing"], line["duplicates"]) == (2, 4)
    assert line["server_cpu_percent"] == 60.0
    assert line["server_us_per_frame"] == 1200.0
    assert line["gap_ms"] == {"p50": 20.0, "p99": 20.0, "p99.9": 20.0}
    assert line["first_audio_ms"] == {"p50": 3.0, "p99": None}
    assert (line["saturated"], line["starved"], line["load_average"]) == (None, False, 1.5)


@pytest.mark.parametrize(
    ("heard", "verdict"),
    [
        (outcome(server=0.9, generator=0.9), "server"),
        (outcome(generator=0.9), "generator"),
        (outcome(late=0.2), "late"),
        (outcome(frames=400), "late"),
        (outcome(frames=0), "late"),
    ],
)
def test_who_is_saturated_is_said(heard: Outcome, verdict: str) -> None:
    line = line_of(heard)
    assert line["saturated"] == verdict


def test_lateness_on_a_machine_that_others_use_is_no_saturation() -> None:
    line = line_of(outcome(late=0.2, others=0.6))
    assert (line["starved"], line["saturated"]) == (True, None)
    line = line_of(outcome(server=0.9, others=0.6))
    assert (line["starved"], line["saturated"]) == (True, "server")


def test_ratios_are_of_what_both_have() -> None:
    ours = line_of(outcome(server=0.6))
    peer = line_of(outcome(server=0.4, late=0.002))
    assert compare(ours, peer) == {
        "first_audio_ms.p50": 1.0,
        "gap_ms.p99": 1.0,
        "late_ms.p99": 0.5,
        "server_us_per_frame": 1.5,
    }
    assert compare(ours, skipped(CELL, 5)) == {}


def test_a_table_says_what_was_not_measured_and_what_is_doubtful() -> None:
    peer = Cell("quic", "frames", 10, "aioquic")
    lines = [line_of(outcome(server=0.95)), skipped(peer, 5)]
    assert table(summarise(lines), "frames") == [
        "| listeners | Tenuto, QUIC | bare aioquic |",
        "|---|---|---|",
        "| 10 | 3.0 / 20.0 (saturated: server) | not measured: saturated at 5 |",
    ]


ROW = '{"rows": [{"pattern": "frames", "transport": "quic", "server": "tenuto", "listeners": 1'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rubbish",
        "[]",
        '{"bench": "ring"}',
        "[" * 100_000,
        '{"rows": 5}',
        '{"rows": [5]}',
        '{"rows": [{"pattern": "frames"}]}',
        '{"rows": [{"pattern": "frames", "listeners": []}]}',
        ROW + "}]}",
        ROW + ', "first_audio_ms.p50": "x", "gap_ms.p99": 1}]}',
    ],
)
def test_a_table_of_something_else_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(text)
    assert main([str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{file} cannot be used: ")
    assert err.count("\n") == 1


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="CPU time is read from /proc")
@pytest.mark.parametrize(("transport", "pattern"), [("quic", "frames"), ("chunked", "groups")])
def test_a_small_run_measures_both_servers(
    transport: str, pattern: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(
        (1, 3), spread=0.1, settle=0.4, steady=0.6, turns="op",
        transports=(transport,), patterns=(pattern,),
    )  # fmt: skip
    lines = list(measure(plan))
    assert [(line["listeners"], line["server"] == "tenuto") for line in lines] == [
        (1, True), (1, False), (3, True), (3, False),
    ]  # fmt: skip
    for line in lines:
        assert (line["bench"], line["transport"], line["pattern"]) == (
            "first_audio", transport, pattern,
        )  # fmt: skip
        if "not_measured" in line:  # A machine busy enough may not keep up with one.
            continue
        assert (line["missing"], line["duplicates"]) == (0, 0), line
        assert line["troubles"] == []
        assert line["rounds"] == 1
    for line in lines[:2]:
        assert line["silent"] == 0
        assert line["first_audio_ms"]["p50"] > 0  # type: ignore[index]
        assert line["connect_to_first_ms"]["p50"] > line["first_audio_ms"]["p50"]  # type: ignore[index]
    summary = summarise(lines)
    assert len(summary["rows"]) == 4  # type: ignore[arg-type]
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps(summary))
    assert main([str(file), "--pattern", pattern]) == 0
    assert capsys.readouterr().out.count("\n") == 4


def test_a_table_tells_of_listeners_that_heard_nothing() -> None:
    deaf = replace(outcome(others=1.0), silent=7)
    (_, _, row) = table(summarise([line_of(deaf)]), "frames")
    assert row == "| 10 | 3.0 / 20.0 (7 silent, starved) |"
