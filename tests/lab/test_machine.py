"""The worst of a wave's links and processes, from plain numbers."""

from __future__ import annotations

import os

import pytest

from bench.lab.machine import Usage, machine_of
from netem.drivers.report import BedTally, Lateness
from netem.link import PathTally, Tally, WayTally


def tally(*, p99: float, unread: int = 0, overflowed: int = 0) -> BedTally:
    way = WayTally(link=Tally(overflowed=overflowed))
    return BedTally(
        path=PathTally(up=way, down=WayTally(link=Tally())),
        lateness=Lateness(count=9, p50=p99 / 4, p99=p99, max=2 * p99),
        behind=p99 / 2,
        unread=unread,
        unscheduled="not permitted" if unread else None,
    )


def usage(at: float, busy: float, **processes: float) -> Usage:
    return Usage(at=at, total=2 * at, busy=busy, processes=processes)


def test_the_worst_link_and_the_busiest_process_are_told() -> None:
    machine = machine_of(
        usage(10.0, 4.0, server=1.0, listener=2.0),
        usage(20.0, 16.0, server=4.0, listener=3.0),
        [tally(p99=0.001), tally(p99=0.0004, unread=3, overflowed=2)],
        loop_lag=0.003,
        send_lag=0.002,
    )
    assert (machine.emulator_p99, machine.emulator_max, machine.behind) == (0.001, 0.002, 0.0005)
    assert (machine.unread, machine.overflowed, machine.write_errors) == (3, 2, 0)
    assert machine.unscheduled == "not permitted"
    assert machine.cores_busy == pytest.approx(0.6)
    assert (machine.busiest_name, machine.busiest) == ("server", pytest.approx(0.3))
    assert (machine.loop_lag, machine.send_lag) == (0.003, 0.002)


def test_the_usage_of_this_process_grows() -> None:
    before = now = Usage.now([("me", os.getpid())])
    while now.busy <= before.busy or now.processes["me"] <= before.processes["me"]:
        now = Usage.now([("me", os.getpid())])
    assert now.total >= before.total + (now.busy - before.busy)
