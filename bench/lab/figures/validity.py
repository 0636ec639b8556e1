"""Whether the machine was equal to its task while a wave ran: if not, the wave does not count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from bench.lab.record import Machine

__all__ = ["LIMITS", "Limit", "faults"]


class Limit(NamedTuple):
    what: str
    of: Callable[[Machine], float]
    most: float
    unit: str
    """`ms`, `%` or what is counted."""

    def told(self, value: float) -> str:
        match self.unit:
            case "ms":
                return f"{1000 * value:.1f} ms"
            case "%":
                return f"{100 * value:.0f} %"
            case _:
                return f"{value:,.0f}"


LIMITS: Final = (
    Limit("emulator late, 99th percentile", lambda each: each.emulator_p99, 0.001, "ms"),
    # A frame's time: such a hiccup is as large as what the figures are about.
    Limit("emulator late, at most", lambda each: each.emulator_max, 0.020, "ms"),
    Limit("emulator away, at most", lambda each: each.behind, 0.020, "ms"),
    Limit("packets dropped unread by a device", lambda each: each.unread, 0, "packets"),
    Limit("packets the emulator could not write", lambda each: each.write_errors, 0, "packets"),
    Limit("packets above the emulator's bound", lambda each: each.overflowed, 0, "packets"),
    Limit("all cores busy", lambda each: each.cores_busy, 0.90, "%"),
    Limit("busiest process, of one core", lambda each: each.busiest, 0.90, "%"),
    Limit("receiver's timer late, at most", lambda each: each.loop_lag, 0.020, "ms"),
    Limit("sender late, at most", lambda each: each.send_lag, 0.020, "ms"),
)
"""Decided before anything was measured, and loosened by nothing."""


def faults(machine: Machine) -> tuple[str, ...]:
    """Why the figures of its wave do not count, with value and limit; empty if they do."""
    return tuple(
        f"{limit.what}: {limit.told(value)}{_whose(limit, machine)},"
        f" the limit is {limit.told(limit.most)}"
        for limit in LIMITS
        # The other way round, what is not a number would pass.
        if not (value := limit.of(machine)) <= limit.most
    )


def _whose(limit: Limit, machine: Machine) -> str:
    named = limit.what.startswith("busiest") and machine.busiest_name
    return f" ({machine.busiest_name})" if named else ""
