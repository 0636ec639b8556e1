"""The Markdown tables of docs: `python -m bench.link_table FILE`, FILE of `bench link`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.ending import status

__all__ = ["main", "tables"]

Row = Mapping[str, Any]

_ROADS = {
    "empty": "veth pair alone",
    "loopback": "loopback alone",
    "tun": "tun",
    "veth": "veth",
    "relay": "relay",
}


def tables(summary: Row) -> list[str]:
    """Lines of Markdown: ceilings, latencies, the pure link.

    Raises `ValueError` for what is no summary of the bench.
    """
    try:
        return [
            *_ceilings(summary["ceiling"]),
            "",
            *_latencies(summary["latency"]),
            "",
            *_pure(summary["pure"]),
        ]
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"its rows are none of link ({what})") from None


def _ceilings(rows: Sequence[Row]) -> list[str]:
    kinds = list(dict.fromkeys((row["size"], row["ways"]) for row in rows))
    heads = [f"{size} B, {'both ways' if ways == 2 else 'one way'}" for size, ways in kinds]
    lines = ["| road, profile | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    found: dict[str, dict[tuple[int, int], str]] = {}
    for row in rows:
        cells = found.setdefault(_name(row), {})
        cells[row["size"], row["ways"]] = _ceiling(row)
    for name, cells in found.items():
        lines.append(f"| {name} | " + " | ".join(cells.get(kind, "") for kind in kinds) + " |")
    return lines


def _ceiling(row: Row) -> str:
    if "not_measured" in row:
        return "not measured"
    rate = row["packets_per_second"]
    shown = "none clean" if rate is None else f"{rate / 1000:.0f}"
    ratio = row["ratio_to_peer"]
    by = row["limited_by"] or "nobody"
    notes = [] if ratio is None else [f"{ratio:.2f}"]
    notes += [] if by == "emulator" else [by]
    notes += ["**invalid**"] if row["invalid"] else []
    return f"{shown} ({', '.join(notes)})" if notes else shown


def _latencies(rows: Sequence[Row]) -> list[str]:
    lines = [
        "| road | flows, payload | up | down | emulator late p50 / p99 / max | emulator CPU "
        "| generator late p99 |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        what = f"| {_name(row)} | {row['flows']}, {row['size']} B |"
        if "not_measured" in row:
            lines.append(f"{what} not measured | | | | |")
            continue
        late = row["emulator_late_ms"]
        own = "–" if late is None else _spread(late, "p50", "p99", "max")
        cpu = row["emulator_cpu_percent"]
        generator = row["generator_late_ms"]["p99"]
        faults = f" **invalid: {', '.join(row['invalid'])}**" if row["invalid"] else ""
        ways = (_spread(row[way]["added_ms"], "p50", "p99", "p99.9") for way in ("up", "down"))
        lines.append(f"{what} {' | '.join(ways)} | {own} | {cpu} % | {generator}{faults} |")
    return lines


def _pure(rows: Sequence[Row]) -> list[str]:
    lines = ["| profile | ratio to heapq | offers a second |", "|---|---|---|"]
    for row in rows:
        ratio = row["ratio_to_heapq"]["median"]
        lines.append(f"| {row['profile']} | {ratio:.1f} | {row['offers_per_second']:,} |")
    return lines


def _name(row: Row) -> str:
    name = _ROADS[row["road"]]
    if row["profile"]:
        name += f", {row['profile']}"
    if row["flows"] > 1 and "packets_per_second" in row:
        name += f", {row['flows']} flows"
    return name if row["first"] else f"{name}, ordinary priority"


def _spread(values: Row, *names: str) -> str:
    return " / ".join("–" if values[name] is None else f"{values[name]:.3f}" for name in names)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.link_table", description=__doc__)
    parser.add_argument("file", type=Path, help="what `python -m bench link` printed")
    options = parser.parse_args(arguments)
    try:
        lines = tables(_summary(options.file))
    except (OSError, ValueError, RecursionError) as error:
        print(f"{options.file} cannot be used: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


def _summary(file: Path) -> Row:
    """The last line, which must be a summary of `link`."""
    lines = file.read_text(encoding="utf-8").splitlines()
    last: Any = json.loads(lines[-1]) if lines else None
    if not isinstance(last, dict) or last.get("bench") != "link" or not last.get("summary"):
        raise ValueError("its last line is no summary of link; let the bench run to its end")
    return last


if __name__ == "__main__":
    sys.exit(status(main))
