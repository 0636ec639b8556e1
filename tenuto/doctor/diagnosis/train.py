"""Probes at set times, and how long to wait for their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenuto.doctor.diagnosis.evidence import Icmp, IcmpKind, Probe

__all__ = ["Order", "Train", "refused", "waits_until"]

_LEAST_PATIENCE = 0.5
"""Seconds without an answer after which no more is waited for, where the path is quick."""

_SILENT_PATIENCE = 2.5
"""The same where nothing was answered at all: more than a 2G path takes."""

_MOST_PATIENCE = 5.0
"""Seconds after the last probe after which an answer is none."""

_REFUSALS = 3
"""ICMP errors after which nothing more is sent to a port that has never answered."""


@dataclass(frozen=True, slots=True)
class Order:
    """Send a probe of `size` bytes, IP header included, `after` seconds from the start."""

    after: float
    flow: int
    number: int
    size: int


@dataclass(frozen=True, slots=True)
class Train:
    """Orders in the order of their times."""

    orders: tuple[Order, ...]


def refused(probes: Sequence[Probe], icmp: Sequence[Icmp]) -> bool:
    """Whether the network has said often enough that nothing will pass."""
    if any(probe.answered is not None for probe in probes):
        return False
    return sum(error.kind is not IcmpKind.TOO_BIG for error in icmp) >= _REFUSALS


def waits_until(probes: Sequence[Probe], icmp: Sequence[Icmp]) -> float:
    """When to stop waiting for the answers of a train that was sent."""
    last = max(probe.sent for probe in probes)
    answered = [probe for probe in probes if probe.answered is not None]
    if len(answered) == len(probes) or refused(probes, icmp):
        return last
    if not answered:
        return last + _SILENT_PATIENCE
    newest = max(last, *(probe.answered for probe in answered if probe.answered is not None))
    slowest = max(probe.answered - probe.sent for probe in answered if probe.answered is not None)
    return min(newest + max(_LEAST_PATIENCE, 2 * slowest), last + _MOST_PATIENCE)
