"""From what listeners heard to the figures of `first_audio`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

from bench.load import Outcome
from bench.report import Figures
from tenuto.media import FRAME_DURATION

__all__ = ["Cell", "compare", "describe", "percentile", "skipped", "summarise"]

_FULL_CORE = 0.85
"""A share of a core from which on queues, not work, are measured."""

_LATEST = 0.100
"""Seconds of lateness at the 99th percentile: half the lead, and nobody keeps up."""

_LEAST_HEARD = 0.95
"""The share of the frames due in the steady window that must come in it."""

_ROOM = 1.5
"""Cores that a server and its listeners need, not to wait for each other."""

_QUOTED = ("first_audio_ms.p50", "first_audio_ms.p99", "connect_to_first_ms.p50", "gap_ms.p50",
           "gap_ms.p99", "late_ms.p99", "server_cpu_percent", "server_us_per_frame")  # fmt: skip
"""What the summary repeats of every line; those of `_RATIOS` are also compared."""

_RATIOS = ("first_audio_ms.p50", "gap_ms.p99", "late_ms.p99", "server_us_per_frame")

Spread: TypeAlias = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Cell:
    """What a line is about."""

    transport: str
    pattern: str
    listeners: int
    server: str


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value that `share` of the values do not exceed, in ms; None where that is none of
    them but the largest, which so few values do not tell.
    """
    if not values or (share > 0.5 and round(len(values) * (1 - share), 6) < 1):
        return None
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000, 2)


def describe(
    cell: Cell,
    steady: float,
    rounds: Sequence[Outcome],
    *,
    load_average: float,
    cores: int,
) -> Figures:
    """One line: all rounds of a cell together."""
    gaps = [gap for each in rounds for gap in each.gaps]
    late = [value for each in rounds for value in each.lateness]
    first = [value for each in rounds for value in each.first]
    seconds = sum(each.usage.at for each in rounds)
    server = sum(each.usage.server for each in rounds)
    generator = sum(each.usage.generator for each in rounds)
    busy = sum(each.usage.busy for each in rounds)
    frames = sum(each.frames for each in rounds)
    due = cell.listeners * steady * len(rounds) / FRAME_DURATION
    starved = cores - (busy - server - generator) / seconds < _ROOM
    keeping_up = _keeping_up(percentile(late, 0.99), frames / due)
    return {
        "bench": "first_audio",
        **asdict(cell),
        "rounds": len(rounds),
        "first_audio_ms": _spread(first, "p50", "p99"),
        "handshake_ms": _spread([v for each in rounds for v in each.handshake], "p50", "p99"),
        "connect_to_first_ms": _spread(
            [value for each in rounds for value in each.connect_to_first], "p50", "p99"
        ),
        "gap_ms": _spread(gaps, "p50", "p99", "p99.9"),
        "late_ms": _spread(late, "p99", "p99.9"),
        "frames": frames,
        "missing": sum(each.missing for each in rounds),
        "duplicates": sum(each.duplicates for each in rounds),
        "silent": sum(each.silent for each in rounds),
        "troubles": sorted({trouble for each in rounds for trouble in each.troubles}),
        "server_cpu_percent": round(100 * server / seconds, 1),
        "generator_cpu_percent": round(100 * generator / seconds, 1),
        "others_cpu_percent": round(100 * max(0.0, busy - server - generator) / seconds, 1),
        "server_us_per_frame": round(server / frames * 1e6, 1) if frames else None,
        "load_average": round(load_average, 2),
        "starved": starved,
        "saturated": _saturation(
            server / seconds, generator / seconds, late=not (starved or keeping_up)
        ),
    }


def skipped(cell: Cell, saturated_at: int) -> Figures:
    """The line of a cell that was not measured."""
    return {
        "bench": "first_audio",
        **asdict(cell),
        "not_measured": f"saturated at {saturated_at}",
        "saturated": None,
    }


def compare(ours: Figures, peer: Figures) -> Mapping[str, float]:
    """Ours divided by the peer's, for what both have."""
    ratios = {}
    for name in _RATIOS:
        mine, theirs = _figure(ours, name), _figure(peer, name)
        if mine is not None and theirs:
            ratios[name] = round(mine / theirs, 2)
    return ratios


def summarise(lines: Sequence[Figures]) -> Figures:
    """The figures a README may quote: a row for each line."""
    rows = []
    for line in lines:
        row = {name: line[name] for name in ("transport", "pattern", "listeners", "server")}
        if "not_measured" in line:
            row["not_measured"] = line["not_measured"]
        else:
            row |= {name: _figure(line, name) for name in _QUOTED}
            row |= {name: line[name] for name in ("silent", "saturated", "starved", "load_average")}
        if line.get("ratio_to_peer"):
            row["ratio_to_peer"] = line["ratio_to_peer"]
        rows.append(row)
    measured = [line for line in lines if "frames" in line]
    return {
        "bench": "first_audio",
        "summary": True,
        "rows": rows,
        "missing": sum(int(str(line["missing"])) for line in measured),
        "duplicates": sum(int(str(line["duplicates"])) for line in measured),
        "silent": sum(int(str(line["silent"])) for line in measured),
        "cores": os.cpu_count(),
    }


def _spread(values: Sequence[float], *names: str) -> Spread:
    return {name: percentile(values, float(name[1:]) / 100) for name in names}


def _figure(line: Figures, name: str) -> float | None:
    """A number of a line by its path, such as `gap_ms.p99`."""
    value: object = line
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, int | float) else None


def _keeping_up(late: float | None, heard: float) -> bool:
    return heard >= _LEAST_HEARD and (late is None or late <= _LATEST * 1000)


def _saturation(server: float, generator: float, *, late: bool) -> str | None:
    """Who had no more to give, if anybody. Lateness on a busy machine proves nothing."""
    if server > _FULL_CORE:
        return "server"
    if generator > _FULL_CORE:
        return "generator"
    return "late" if late else None
