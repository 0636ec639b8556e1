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
    """Of all cores, by anybody."""
    stolen: float
    """By a neighbour of this virtual machine."""
    programs: Mapping[str, float]
    """Of senders and receivers, by name; threads are counted in."""
    rest: float
    """Of emulators and of this process."""

    @classmethod
    def now(cls, programs: Iterable[tuple[str, int]], emulators: Iterable[int]) -> Usage:
        """Both by their pids."""
        with open("/proc/stat", encoding="ascii") as stat:
            fields = [int(each) for each in stat.readline().split()[1:9]]
        idle, stolen = fields[3] + fields[4], fields[7]
        return cls(
            at=time.monotonic(),
            total=sum(fields) / _TICKS,
            busy=(sum(fields) - idle - stolen) / _TICKS,
            stolen=stolen / _TICKS,
            programs={name: _seconds(pid) for name, pid in programs},
            rest=sum(map(_seconds, (*emulators, os.getpid()))),
        )

    def since(self, earlier: Usage) -> Usage:
        return Usage(
            at=self.at - earlier.at,
            total=self.total - earlier.total,
            busy=self.busy - earlier.busy,
            stolen=self.stolen - earlier.stolen,
            programs={
                name: used - earlier.programs.get(name, 0.0) for name, used in self.programs.items()
            },
            rest=self.rest - earlier.rest,
        )

    @property
    def ours(self) -> float:
        return sum(self.programs.values()) + self.rest


def _seconds(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS


def machine_of(
    used: Usage, tallies: Iterable[BedTally], *, first: bool, loop_lag: float, send_lag: float
) -> Machine:
    """The worst of all beds, and the shares of what was `used` in a time.

    `first`: senders and receivers run before all ordinary processes.
    """
    tallies = tuple(tallies)
    unscheduled = next((each.unscheduled for each in tallies if each.unscheduled), None)
    total = max(used.total, 1e-9)
    ours, others = used.ours / total, max(0.0, used.busy - used.ours) / total
    behind_us = first and unscheduled is None
    busiest = max(used.programs, key=used.programs.__getitem__, default="")
    links = [way.link for each in tallies for way in (each.path.up, each.path.down)]
    return Machine(
        emulator_p99=max((each.lateness.p99 for each in tallies), default=0.0),
        emulator_max=max((each.lateness.max for each in tallies), default=0.0),
        behind=max((each.behind for each in tallies), default=0.0),
        unread=sum(each.unread for each in tallies),
        write_errors=sum(each.write_errors for each in tallies),
        overflowed=sum(link.overflowed for link in links),
        unscheduled=unscheduled,
        cores_busy=min(1.0, ours + used.stolen / total + (0.0 if behind_us else others)),
        others_busy=min(1.0, others),
        busiest=used.programs.get(busiest, 0.0) / max(used.at, 1e-9),
        busiest_name=busiest,
        loop_lag=loop_lag,
        send_lag=send_lag,
    )
