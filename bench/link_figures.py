"""From turns to the lines and the summary of `link`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.link_ceiling import MOST_LOST, Found
from bench.link_end import Ages
from bench.link_turns import Turn
from bench.report import Figures

__all__ = ["Cell", "added", "ceiling", "faults", "latency", "skipped", "summarise"]

_ROOM = 0.5
"""Cores that others may have had: with more, the machine was measured."""

_LATEST_SENT = 0.001
"""Seconds at the 99th percentile by which a generator may miss its own schedule."""

_LATEST_READ = 0.010
"""Seconds at the 99th percentile that what has arrived may wait for the receiver."""

_MOST_STEP = 0.000_050
"""Seconds by which the two clocks may have come apart in a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What a line is about."""

    figure: str
    """`ceiling` or `latency`."""
    road: str
    profile: str
    flows: int
    size: int
    """Bytes of the IP packet for a ceiling, of the UDP payload for a latency."""
    ways: int
    first: bool = True
    """Whether the emulator may run before all ordinary processes."""


def skipped(cell: Cell, reason: str) -> Figures:
    return {"bench": "link", **asdict(cell), "not_measured": reason}


def ceiling(cell: Cell, found: Found, peer: float | None) -> Figures:
    """`peer`: the ceiling of the road without an emulator."""
    best, stopped = found.best, found.stopped
    rate = None if best is None else round(best.load.rate)
    busy = max(turn.others for turn in found.turns)
    shown = best if best is not None else found.turns[-1]
    return {
        "bench": "link",
        **_of(cell, shown),
        "packets_per_second": rate,
        "megabits_per_second": None if rate is None else round(rate * cell.size * 8 / 1e6, 1),
        "limited_by": found.by,
        "ratio_to_peer": round(rate / peer, 2) if rate and peer else None,
        "at_best": _at(shown),
        "stopped_at": None
        if stopped is None
        else {"rate": round(stopped.load.rate)} | _at(stopped),
        "turns": len(found.turns),
        "others_cpu_percent": round(100 * busy, 1),
        "load_average": round(os.getloadavg()[0], 2),
        # What others had the emulator may have missed: a lower bound.
        "invalid": ["machine"] if busy > _ROOM else [],
    }


def _of(cell: Cell, turn: Turn) -> dict[str, object]:
    return {**asdict(cell), "first": cell.first and turn.counts.unscheduled is None}


def _at(turn: Turn) -> dict[str, object]:
    counts = turn.counts
    return {
        "sent": turn.sent,
        "lost_by_profile": counts.lost,
        "lost_else": round(turn.unintended * turn.sent),
        "undelivered": counts.undelivered,
        "overflowed": counts.overflowed,
        "socket_full": counts.unread,
        "backlog_full": counts.backlog,
        "emulator_cpu_percent": round(100 * turn.emulator, 1),
        "emulator_behind_ms": _ms(counts.behind),
        "generator_late_ms": _ms(turn.client.late.p99),
    }


def latency(cell: Cell, turn: Turn, peer: Turn | None) -> Figures:
    """`peer`: the same load on the road without an emulator."""
    counts, ends = turn.counts, {"up": turn.server, "down": turn.client}
    theirs = None if peer is None else {"up": peer.server, "down": peer.client}
    ways = {}
    for way, receiver in ends.items():
        above = added(receiver.age, turn.load.delay)
        ways[way] = {"added_ms": above, "received": receiver.received}
        if theirs is not None:
            bare = added(theirs[way].age, 0.0)
            ways[way]["above_peer_ms"] = {
                name: round(value - other, 3)
                for name, value in above.items()
                if value is not None and (other := bare[name]) is not None
            }
    lateness = counts.lateness
    return {
        "bench": "link",
        **_of(cell, turn),
        "rate": round(turn.load.rate),
        **ways,
        "sent": turn.sent,
        "lost_by_profile": counts.lost,
        "lost_else": round(turn.unintended * turn.sent),
        "emulator_cpu_percent": round(100 * turn.emulator, 1),
        "emulator_late_ms": {
            "p50": _ms(lateness.p50), "p99": _ms(lateness.p99), "max": _ms(lateness.max),
        } if lateness.count else None,
        "emulator_behind_ms": _ms(counts.behind),
        "generator_late_ms": _worst(turn.client.late, turn.server.late),
        "receiver_late_ms": _worst(turn.client.unread, turn.server.unread),
        "others_cpu_percent": round(100 * turn.others, 1),
        "load_average": round(os.getloadavg()[0], 2),
        "invalid": faults(turn),
    }  # fmt: skip


def added(age: Ages, delay: float) -> dict[str, float | None]:
    """Milliseconds above the profile's delay."""
    return {
        "p50": _ms(age.p50, delay),
        "p99": _ms(age.p99, delay),
        "p99.9": _ms(age.p999, delay),
        "max": _ms(age.max, delay),
    }


def faults(turn: Turn) -> list[str]:
    """Why the figures of a turn say less about the link than about something else."""
    ends = (turn.client, turn.server)
    found = []
    if any((end.late.p99 or 0.0) > _LATEST_SENT or end.refused for end in ends):
        found.append("generator")
    if turn.counts.unread or any((end.unread.p99 or 0.0) > _LATEST_READ for end in ends):
        found.append("receiver")
    if turn.others > _ROOM:
        found.append("machine")
    if any(abs(end.stepped) > _MOST_STEP for end in ends):
        found.append("clock")
    if turn.unintended > MOST_LOST:
        found.append("loss")
    return found


def _worst(one: Ages, other: Ages) -> dict[str, float | None]:
    """Of both ends, figure by figure."""

    def most(a: float | None, b: float | None) -> float | None:
        return _ms(max(value for value in (a, b, 0.0) if value is not None))

    return {"p50": most(one.p50, other.p50), "p99": most(one.p99, other.p99),
            "max": most(one.max, other.max)}  # fmt: skip


def _ms(seconds: float | None, less: float = 0.0) -> float | None:
    return None if seconds is None else round((seconds - less) * 1000, 3)


_KEYS = ("figure", "road", "profile", "flows", "size", "ways", "first")
_QUOTED = {
    "ceiling": ("packets_per_second", "limited_by", "ratio_to_peer", "invalid"),
    "latency": ("up", "down", "emulator_cpu_percent", "emulator_late_ms", "generator_late_ms",
                "invalid"),
    "pure": ("profile", "ratio_to_heapq", "offers_per_second"),
}  # fmt: skip
"""What the summary repeats of every line."""


def summarise(lines: Sequence[Figures]) -> Figures:
    rows: dict[str, list[dict[str, Any]]] = {figure: [] for figure in _QUOTED}
    for line in lines:
        figure = str(line["figure"])
        row = {name: line[name] for name in _KEYS[1:] if name in line}
        if "not_measured" in line:
            row["not_measured"] = line["not_measured"]
        else:
            row |= {name: line[name] for name in _QUOTED[figure]}
        rows[figure].append(row)
    measured = [line for line in lines if "invalid" in line]
    return {
        "bench": "link",
        "summary": True,
        **rows,
        "invalid_lines": sum(bool(line["invalid"]) for line in measured),
        "cores": os.cpu_count(),
    }
