"""The findings on one screen of a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

from bench.lab.figures import Estimate, ModeTable, ProfileTable, Unit, late_or_lost, tables
from bench.lab.record import Results
from bench.lab.report.text import bare, clean, interval, short
from bench.lab.report.wording import SHARE, headline, tersely

__all__ = ["summary"]

_LINES: Final = 24
_NARROWEST: Final = 40


def summary(results: Results, width: int) -> str:
    """At most 24 lines, none wider than `width` (nor narrower than 40 columns make sense)."""
    width = max(width, _NARROWEST)
    found = tables(results)
    head = textwrap.wrap(clean(headline(found)), width, max_lines=4, placeholder=" …")
    tail = _tail(results, width)
    room = _LINES - len(head) - len(tail) - 2
    body = _modes(found[0], width) if len(found) == 1 else _profiles(found, width)
    if len(body) > room:
        hidden = len(body) - room + 1
        body = [*body[: room - 1], f"and {hidden} more, in the report"]
    parts = [part for part in (head, body, tail) if part]
    return "\n\n".join("\n".join(part) for part in parts)


def _tail(results: Results, width: int) -> list[str]:
    """What must not be overlooked."""
    told = []
    bad = sum(bool(wave.faults) for wave in results.waves)
    if bad:
        told.append(f"{bad} of {len(results.waves)} waves did not count: the machine was too busy")
    flows = results.valid_flows()
    troubled = sum(flow.trouble is not None for flow in flows)
    if troubled:
        told.append(f"{troubled} of {len(flows)} flows ended early; what they did not get is lost")
    if not results.complete:
        told.append("interrupted: only the finished waves are in here")
    return [short(each, width) for each in told]


def _modes(table: ProfileTable, width: int) -> list[str]:
    rows = [
        ["late or lost, %:", "60 ms", "150 ms", "95 %", "p99 ms", "first ms", "kbit/s", "verdict"]
    ]
    rows += [_row(mode) for mode in table.modes]
    return _aligned(rows, width) if table.modes else []


def _row(mode: ModeTable) -> list[str]:
    def told(name: str, unit: Unit) -> str:
        found: Estimate = mode.estimates[name]
        return bare(found.value, unit)

    return [
        clean(mode.name),
        told(late_or_lost(0.060), "share"),
        told(SHARE, "share"),
        interval(mode.estimates[SHARE], "share"),
        told("p99", "time"),
        told("first_audio", "time"),
        told("down", "rate"),
        tersely(mode.comparisons.get(SHARE)),
    ]


def _profiles(found: Sequence[ProfileTable], width: int) -> list[str]:
    rows = [["late or lost, % at 150 ms:", "baseline", "95 %", "least", "by"]]
    for table in found:
        baseline = table.mode(table.baseline)
        if baseline is None:
            rows.append([clean(table.note.name), "–", "", "", "nothing counts"])
            continue
        best = min(table.modes, key=lambda mode: mode.estimates[SHARE].value)
        rows.append(
            [
                clean(table.note.name),
                bare(baseline.estimates[SHARE].value, "share"),
                interval(baseline.estimates[SHARE], "share"),
                bare(best.estimates[SHARE].value, "share"),
                short(best.name, 23),
            ]
        )
    return _aligned(rows, width)


def _aligned(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Columns of one width each; those to the right give way where there is no room."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    between = 2 if sum(widths) + 2 * (len(widths) - 1) <= width else 1
    kept = len(widths)
    while kept > 1 and min(widths[0], 16) + sum(widths[1:kept]) + between * (kept - 1) > width:
        kept -= 1
    first = min(widths[0], width - sum(widths[1:kept]) - between * (kept - 1))
    return [
        (
            short(row[0], first).ljust(first)
            + "".join(
                " " * between + row[column].rjust(widths[column]) for column in range(1, kept)
            )
        ).rstrip()
        for row in rows
    ]
