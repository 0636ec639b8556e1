"""Results as tables for a terminal, or for a page of documentation."""

from collections.abc import Iterable

from rich.table import Table

from netem.measure.agreement import LEVEL, Agreement
from netem.measure.result import SEEDED, Result
from netem.measure.statistics import Interval
from netem.measure.verdict import Row, Unit

__all__ = ["agreement_lines", "amount", "headline", "table_of"]

_FACTORS = {Unit.PERCENT: 100.0, Unit.PACKETS: 1.0, Unit.MILLISECONDS: 1000.0}
_VERDICTS = {True: "agrees", False: "[bold red]does not agree", None: ""}


def headline(result: Result) -> str:
    plan = result.measurement.plan
    family = "IPv6" if result.ipv6 else "IPv4"
    # The kernel draws without one.
    seed = f"seed {result.seed}" if result.driver in SEEDED else "no seed"
    return (
        f"{result.profile} through {result.driver}, {family}, {seed}: "
        f"{plan.packets:,} packets of {plan.size} bytes each way, {plan.rate:g} a second"
    )


def table_of(result: Result) -> Table:
    table = Table(pad_edge=False, box=None)
    for name in ("way", "figure", "set", "measured", "95 % interval", "verdict"):
        table.add_column(name, justify="left" if name in ("way", "figure", "verdict") else "right")
    for row in _ordered(result.rows):
        table.add_row(
            row.way.value,
            row.figure,
            amount(row.expected, row.unit) + ("*" if row.modelled else ""),
            amount(row.measured, row.unit),
            _interval(row.interval, row.unit),
            _VERDICTS[row.agrees],
        )
    if any(row.modelled for row in result.rows):
        table.caption = "* by our link in virtual time: no formula gives it"
        table.caption_justify = "left"
    return table


def amount(value: float | None, unit: Unit) -> str:
    return "" if value is None else f"{value * _FACTORS[unit]:.2f} {unit.value}"


def _interval(interval: Interval | None, unit: Unit) -> str:
    if interval is None:
        return ""
    low, high = (edge * _FACTORS[unit] for edge in interval)
    return f"{low:.2f} .. {high:.2f}"


def _ordered(rows: Iterable[Row]) -> list[Row]:
    """What is judged comes first in each direction."""
    return sorted(rows, key=lambda row: (row.way.value != "up", row.agrees is None))


def _agreed(one: Agreement) -> str:
    if one.agrees:
        return "yes"
    return "**no**" if not one.apart else f"**no**: {', '.join(one.apart)}"


def agreement_lines(found: Iterable[Agreement]) -> list[str]:
    """A table in Markdown, so that a page can quote it as it is."""
    rows = [
        "| profile | way | loss: ours | netem | gap, 99 % | median delay: ours | netem "
        "| netem less its empty path | agree |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    assert LEVEL == 0.99
    for one in found:
        family = " (IPv6)" if one.ipv6 else ""
        gap = " .. ".join(f"{edge * 100:+.2f}" for edge in one.gap)
        ours, theirs = one.delay
        above = None if theirs is None else theirs - one.floor
        cells = [
            f"{one.profile}{family}",
            one.way.value,
            *(amount(loss, Unit.PERCENT) for loss in one.loss),
            gap,
            *(amount(delay, Unit.MILLISECONDS) or "-" for delay in (ours, theirs)),
            amount(above, Unit.MILLISECONDS),
            _agreed(one),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return rows
