"""Does UDP pass? Which probes to send next, and what the pattern of answers means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from tenuto.doctor.diagnosis.evidence import Icmp, IcmpKind, Ledger, Probe
from tenuto.doctor.diagnosis.train import Order, Train, refused

__all__ = ["Reach", "Udp", "judge_reach", "next_reach"]

TRAIN = 40
"""Probes in a row on one flow: a flow that dies later is taken for one that lives."""

INTERVAL = 0.03
"""Seconds between two probes: with the least size, about the rate of a voice at 16 kHz."""

_AGAIN, _AGAIN_INTERVAL = 10, 0.1
_GENTLE, _GENTLE_INTERVAL = 4, 1.3
_OLD_FLOW_EVERY = 4

_TAIL = 8
"""Unanswered probes at the end of a train that are no accident, even where half are lost."""

_ACCIDENT = 0.01
"""The chance of a run of losses up to which it is called an outage."""

_POLICED = 0.35
"""The share of quick probes answered below which a limit is suspected, and ..."""

_MOST_MISSED = 1
"""... how many of the gentle ones may be missing for the rate to be what made the difference."""

_FAIR = 3.0
"""TCP is this many times quicker, or both are slow because the line is."""


class Udp(StrEnum):
    OPEN = "open"
    BLOCKED = "blocked"
    REJECTED = "rejected"
    PROHIBITED = "prohibited"
    UNREACHABLE = "unreachable"
    THROTTLED = "throttled"
    FIRST_PACKET = "first-packet-only"
    DIES = "flow-dies"


@dataclass(frozen=True, slots=True)
class Reach:
    """What UDP does to that port. `rate` is in bits a second, of what a limit lets through."""

    udp: Udp
    sent: int
    answered: int
    loss: float = 0.0
    """Of round trips, an outage left out."""
    outage: float = 0.0
    """Seconds in which nothing was answered, between times in which most was."""
    rtt: float | None = None
    after: int = 0
    """Packets after which a flow dies."""
    rate: float = 0.0
    by: str = ""
    """Who said so by ICMP."""


def next_reach(ledger: Ledger, size: int) -> Train | None:
    """The probes that would tell more, of `size` bytes each; None when all is said."""
    if not ledger.probes:
        return _row(0, TRAIN, INTERVAL, size)
    first, second = ledger.flow(0), ledger.flow(1)
    if not second:
        if refused(ledger.probes, ledger.icmp) or _healthy(first):
            return None
        return _second(size) if ledger.answered else _row(1, _AGAIN, _AGAIN_INTERVAL, size)
    if not ledger.answered or _healthy(second):
        return None
    if ledger.flow(2):
        # An outage may have met both rows.
        again = _slow_passes(ledger.flow(2)) and not ledger.flow(3) and not _dies_after(ledger)
        return _row(3, TRAIN, INTERVAL, size) if again else None
    if not any(probe.answered is not None for probe in first):
        # It was an outage; the second row was short.
        return _row(2, TRAIN, INTERVAL, size)
    return _row(2, _GENTLE, _GENTLE_INTERVAL, size)


def judge_reach(ledger: Ledger, tcp_rate: float | None = None) -> Reach:
    """`tcp_rate` is what TCP was seen to carry towards us, in bits a second."""
    sent, answered = len(ledger.probes), ledger.answered
    if not answered:
        udp, by = _silent(ledger.icmp)
        return Reach(udp, sent, 0, loss=1.0, by=by)
    times = [probe.answered - probe.sent for probe in ledger.probes if probe.answered is not None]
    rtt = median(times)
    after = _dies_after(ledger)
    if after is not None:
        udp = Udp.FIRST_PACKET if after == 1 else Udp.DIES
        return Reach(udp, sent, answered, rtt=rtt, after=after)
    rate = _limit(ledger)
    if rate is not None and (tcp_rate is None or tcp_rate >= _FAIR * rate):
        return Reach(Udp.THROTTLED, sent, answered, rtt=rtt, rate=rate)
    loss, outage = _losses(ledger)
    return Reach(Udp.OPEN, sent, answered, loss=loss, outage=outage, rtt=rtt, rate=rate or 0.0)


def _row(flow: int, count: int, interval: float, size: int) -> Train:
    return Train(tuple(Order(number * interval, flow, number, size) for number in range(count)))


def _second(size: int) -> Train:
    """A new flow, and the old one meanwhile: is it dead, or the path?"""
    orders: list[Order] = []
    for number in range(TRAIN):
        at = number * INTERVAL
        orders.append(Order(at, 1, number, size))
        if number % _OLD_FLOW_EVERY == _OLD_FLOW_EVERY - 1:
            old = TRAIN + number // _OLD_FLOW_EVERY
            orders.append(Order(at + INTERVAL / 2, 0, old, size))
    return Train(tuple(orders))


def _healthy(row: Sequence[Probe]) -> bool:
    share = sum(probe.answered is not None for probe in row) / len(row)
    return share >= 0.5 and any(probe.answered is not None for probe in row[-_TAIL:])


def _silent(icmp: Sequence[Icmp]) -> tuple[Udp, str]:
    named = {
        IcmpKind.PROHIBITED: Udp.PROHIBITED,
        IcmpKind.PORT: Udp.REJECTED,
        IcmpKind.UNREACHABLE: Udp.UNREACHABLE,
    }
    for kind, udp in named.items():
        for error in icmp:
            if error.kind is kind:
                return udp, error.by
    return Udp.BLOCKED, ""


def _dies_after(ledger: Ledger) -> int | None:
    """So many packets of each flow were answered, and then no more."""
    first, second, third = (ledger.flow(flow) for flow in range(3))
    before, later = first[:TRAIN], first[TRAIN:]
    one, other = _last_alive(before), _last_alive(second)
    if one is None or other is None or any(probe.answered is not None for probe in later):
        return None
    after = max(one, other)
    if abs(one - other) > max(2, after // 4):
        return None
    # What is limited by rate alone would have let slow packets pass.
    if any(probe.answered is not None and probe.number >= after for probe in third):
        return None
    return after


def _last_alive(row: Sequence[Probe]) -> int | None:
    """How many were answered before a row fell silent for good; None if it did not."""
    numbers = [index for index, probe in enumerate(row) if probe.answered is not None]
    if not numbers or len(row) - numbers[-1] <= _TAIL:
        return None
    alive = numbers[-1] + 1
    return alive if 2 * len(numbers) >= alive else None


def _limit(ledger: Ledger) -> float | None:
    """The rate that passes, in bits a second, where slow probes pass and quick ones do not."""
    if not _slow_passes(ledger.flow(2)):
        return None
    # The first ones may have found a bucket full.
    rows = (ledger.flow(0)[3:], ledger.flow(1), ledger.flow(3))
    for row in rows:
        if sum(probe.answered is not None for probe in row) > _POLICED * len(row):
            return None
    last = rows[-1]
    span = last[-1].sent - last[0].sent + INTERVAL
    size = sum(probe.size for probe in last if probe.answered is not None)
    return 8 * max(size, last[0].size / 2) / span


def _slow_passes(row: Sequence[Probe]) -> bool:
    passed = sum(probe.answered is not None for probe in row)
    return len(row) == _GENTLE and passed >= _GENTLE - _MOST_MISSED


def _losses(ledger: Ledger) -> tuple[float, float]:
    """The share lost, and the longest time without an answer if it is no accident."""
    runs: list[list[Probe]] = [[]]
    for probe in sorted(ledger.probes, key=lambda probe: probe.sent):
        if probe.answered is None:
            runs[-1].append(probe)
        elif runs[-1]:
            runs.append([])
    longest = max(runs, key=len)
    lost = sum(map(len, runs))
    rest = len(ledger.probes) - len(longest)
    loss = (lost - len(longest)) / rest
    if len(longest) < _TAIL or len(ledger.probes) * loss ** len(longest) > _ACCIDENT:
        return lost / len(ledger.probes), 0.0
    return loss, longest[-1].sent - longest[0].sent + INTERVAL
