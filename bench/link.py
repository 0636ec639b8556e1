"""The loss lab's own cost: packets a second, added delay, and what the pure link takes.

Numbered packets of two processes pass a bed or a relay, and in the same run a road without an
emulator: what the generators themselves can do. docs/benchmarks.md says what the figures mean.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from bench import link_pure
from bench.link_ceiling import Found, search
from bench.link_figures import Cell, ceiling, latency, skipped, summarise
from bench.link_profiles import DELAY, PROFILES
from bench.link_roads import PEERS, make_road
from bench.link_turns import Ends, Load, Turn
from bench.report import Figures, machine, rounds
from netem.errors import ImpairmentError
from tenuto.errors import OperatorError

__all__ = ["FULL", "QUICK", "Plan", "measure", "run"]

_HEADERS = 28
"""Bytes of IPv4 and UDP."""

_FLOW_RATE = 50
"""Packets a second in each direction: a voice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is measured; a group is the flows, the sizes and the ways of some cells."""

    ceilings: tuple[tuple[str, tuple[str, ...], tuple[int, ...], tuple[int, ...], int], ...]
    """Road, profiles, sizes of IP packets, ways, flows."""
    latencies: tuple[tuple[str, str, int, int, bool], ...]
    """Road, profile, flows, bytes of payload, whether the emulator may run first."""
    turn: float
    """Seconds of each rate that a ceiling is looked for with."""
    most: int
    again: bool
    steady: float
    """Seconds of each latency."""


_SIZES = (100, 1_200)
_WAYS = (1, 2)
_ALL = tuple(PROFILES)

FULL = Plan(
    ceilings=(
        ("empty", ("",), _SIZES, _WAYS, 1),
        ("tun", _ALL, _SIZES, _WAYS, 1),
        ("veth", ("clear", "loss5-30"), _SIZES, _WAYS, 1),
        ("loopback", ("",), (200,), (2,), 1),
        ("loopback", ("",), (200,), (2,), 100),
        ("relay", ("clear", "loss5-30"), (200,), (2,), 1),
        ("relay", ("clear", "loss5-30"), (200,), (2,), 100),
    ),
    latencies=(
        ("empty", "", 100, 172, True),
        ("tun", "clear30", 100, 172, True),
        ("tun", "clear30", 100, 172, False),
        ("veth", "clear30", 100, 172, True),
        ("empty", "", 100, 700, True),
        ("tun", "clear30", 100, 700, True),
        ("veth", "clear30", 100, 700, True),
        ("loopback", "", 1, 172, True),
        ("relay", "clear30", 1, 172, True),
        ("loopback", "", 100, 172, True),
        ("relay", "clear30", 100, 172, True),
    ),
    turn=0.4,
    most=8,
    again=True,
    steady=4.0,
)

QUICK = Plan(
    ceilings=(
        ("empty", ("",), (100,), (1,), 1),
        ("tun", ("loss5-30",), (100,), (1,), 1),
        ("veth", ("loss5-30",), (100,), (1,), 1),
        ("relay", ("loss5-30",), (200,), (2,), 1),
    ),
    latencies=(
        ("empty", "", 100, 172, True),
        ("tun", "clear30", 100, 172, True),
        ("relay", "clear30", 100, 172, True),
    ),
    turn=0.2,
    most=4,
    again=False,
    steady=0.8,
)


def run(quick: bool) -> Iterator[Figures]:
    """A line for each figure, the road without an emulator first, then the summary."""
    if sys.platform != "linux":
        raise OperatorError("the bench of the loss lab reads clocks and counters of Linux")
    lines: list[Figures] = []
    for line in measure(QUICK if quick else FULL, quick=quick):
        lines.append(line)
        yield line
    yield {**summarise(lines), "quick": quick, **machine()}


def measure(plan: Plan, *, quick: bool) -> Iterator[Figures]:
    """The lines of a plan, without the summary."""
    yield from link_pure.lines(quick)
    yield from _ceilings(plan)
    yield from _latencies(plan)


def _ceilings(plan: Plan) -> Iterator[Figures]:
    found: dict[Cell, float | None] = {}
    guess = dict.fromkeys(("empty", "tun", "veth", "loopback"), 200_000.0) | {"relay": 80_000.0}
    cells = [
        Cell(figure="ceiling", road=road, profile=profile, flows=flows, size=size, ways=ways)
        for road, profiles, sizes, all_ways, flows in plan.ceilings
        for profile, size, ways in product(profiles, sizes, all_ways)
    ]
    for number in rounds(len(cells), "ceilings"):
        cell = cells[number]
        try:
            result = _ceiling(plan, cell, guess[cell.road])
        except ImpairmentError as error:
            yield skipped(cell, str(error))
            continue
        rate = None if result.best is None else result.best.load.rate
        found[cell] = rate
        guess[cell.road] = rate or guess[cell.road] / 2
        peer = found.get(replace(cell, road=PEERS.get(cell.road, ""), profile=""))
        yield ceiling(cell, result, peer)


def _ceiling(plan: Plan, cell: Cell, guess: float) -> Found:
    load = Load(
        rate=0.0,
        both=cell.ways == 2,
        size=cell.size - _HEADERS,
        seconds=plan.turn,
        delay=DELAY if cell.profile.endswith("30") else 0.0,
    )

    def attempts(ends: Ends) -> Callable[[float], Turn]:
        return lambda rate: ends.turn(replace(load, rate=rate))

    with make_road(cell.road, cell.profile) as road, Ends(road, cell.flows) as ends:
        return search(attempts(ends), guess, most=plan.most, again=plan.again)


def _latencies(plan: Plan) -> Iterator[Figures]:
    found: dict[tuple[str, int, int], Turn] = {}
    for number in rounds(len(plan.latencies), "latencies"):
        road, profile, flows, size, first = plan.latencies[number]
        cell = Cell(
            figure="latency", road=road, profile=profile, flows=flows, size=size, ways=2,
            first=first,
        )  # fmt: skip
        load = Load(
            rate=2.0 * _FLOW_RATE * flows,
            both=True,
            size=size,
            seconds=plan.steady,
            delay=DELAY if profile else 0.0,
            stamped=True,
        )
        try:
            with make_road(road, profile, first=first) as made, Ends(made, flows) as ends:
                turn = ends.turn(load)
        except ImpairmentError as error:
            yield skipped(cell, str(error))
            continue
        found[road, flows, size] = turn
        yield latency(cell, turn, found.get((PEERS.get(road, ""), flows, size)))
