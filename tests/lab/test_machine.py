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


def used(others: float = 4.0) -> Usage:
    """In 10 s of two cores."""
    return Usage(
        at=10.0,
        total=20.0,
        busy=8.0 + others,
        stolen=1.0,
        programs={"server": 3.0, "listener": 1.0},
        rest=4.0,
    )


def test_the_worst_link_and_the_busiest_process_are_told() -> None:
    machine = machine_of(
        used(),
        [tally(p99=0.001), tally(p99=0.0004, unread=3, overflowed=2)],
        first=True,
        loop_lag=0.003,
        send_lag=0.002,
    )
    assert (machine.emulator_p99, machine.emulator_max, machine.behind) == (0.001, 0.002, 0.0005)
    assert (machine.unread, machine.overflowed, machine.write_errors) == (3, 2, 0)
    assert machine.unscheduled == "not permitted"
    assert (machine.busiest_name, machine.busiest) == ("server", pytest.approx(0.3))
    assert (machine.loop_lag, machine.send_lag) == (0.003, 0.002)


@pytest.mark.parametrize(
    ("first", "unread", "busy"),
    [(True, 0, 0.45), (False, 0, 0.65), (True, 1, 0.65)],
    ids=["first", "among others", "emulators among others"],
)
def test_others_count_where_the_lab_does_not_go_before_them(
    first: bool, unread: int, busy: float
) -> None:
    tallies = [tally(p99=0.001, unread=unread)]
    machine = machine_of(used(), tallies, first=first, loop_lag=0.0, send_lag=0.0)
    assert machine.cores_busy == pytest.approx(busy)
    assert machine.others_busy == pytest.approx(0.2)


def test_the_usage_of_this_process_grows() -> None:
    def now() -> Usage:
        return Usage.now([("me", os.getpid())], [])

    before = now()
    while (grown := now().since(before)).programs["me"] <= 0.05:
        pass
    assert grown.rest == pytest.approx(grown.programs["me"], abs=0.02)
    assert grown.ours == pytest.approx(2 * grown.programs["me"], abs=0.02)
    # Differences of large numbers: a hair is lost.
    assert grown.total >= grown.busy - 1e-6
