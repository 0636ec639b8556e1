"""What the machine did while a wave ran."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.lab.record import Machine
from netem.drivers.report import BedTally

__all__ = ["Usage", "machine_of"]

_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Seconds of CPU time until an instant."""

    at: float
    total: float
    """Of all cores, idle or not."""
    busy: float
    """Of all cores, by anybody, or by a neighbour of a virtual machine."""
    processes: Mapping[str, float]
    """By name; threads are counted in."""

    @classmethod
    def now(cls, pids: Iterable[tuple[str, int]]) -> Usage:
        with open("/proc/stat", encoding="ascii") as stat:
            fields = [int(each) for each in stat.readline().split()[1:9]]
        idle = fields[3] + fields[4]
        return cls(
            at=time.monotonic(),
            total=sum(fields) / _TICKS,
            busy=(sum(fields) - idle) / _TICKS,
            processes={name: _seconds(pid) for name, pid in pids},
        )


def _seconds(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS


def machine_of(
    before: Usage, after: Usage, tallies: Iterable[BedTally], *, loop_lag: float, send_lag: float
) -> Machine:
    """The worst of all beds, and the shares of the time between both usages."""
    tallies = tuple(tallies)
    seconds = max(after.at - before.at, 1e-9)
    total = max(after.total - before.total, 1e-9)
    shares = {
        name: (used - before.processes.get(name, 0.0)) / seconds
        for name, used in after.processes.items()
    }
    busiest = max(shares, key=shares.__getitem__, default="")
    links = [way.link for each in tallies for way in (each.path.up, each.path.down)]
    return Machine(
        emulator_p99=max((each.lateness.p99 for each in tallies), default=0.0),
        emulator_max=max((each.lateness.max for each in tallies), default=0.0),
        behind=max((each.behind for each in tallies), default=0.0),
        unread=sum(each.unread for each in tallies),
        write_errors=sum(each.write_errors for each in tallies),
        overflowed=sum(link.overflowed for link in links),
        unscheduled=next((each.unscheduled for each in tallies if each.unscheduled), None),
        cores_busy=min(1.0, (after.busy - before.busy) / total),
        busiest=shares.get(busiest, 0.0),
        busiest_name=busiest,
        loop_lag=loop_lag,
        send_lag=send_lag,
    )
