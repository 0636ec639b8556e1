"""Does UDP pass? Which probes to send next, and what the pattern of answers means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import comb
from statistics import median

from tenuto.doctor.diagnosis.evidence import Icmp, IcmpKind, Ledger, Probe
from tenuto.doctor.diagnosis.train import Order, Train, refused

__all__ = ["SILENT", "Reach", "Udp", "judge_reach", "next_reach"]

TRAIN = 40
"""Probes in a row on one flow: a flow that dies later is taken for one that lives."""

INTERVAL = 0.03
"""Seconds between two probes: with the least size, about the rate of a voice at 16 kHz."""

_AGAIN, _AGAIN_INTERVAL = 10, 0.1
_GENTLE, _GENTLE_INTERVAL = 4, 1.3
_SLOW, _SLOW_INTERVAL = 12, 0.25
_OLD_FLOW_EVERY = 4

_SUSPICIOUS = 0.3
"""The share lost from which a slow row says whether it is for the rate."""

_CHANCE = 0.01
"""That a slow row would do so well if what is lost were lost at any rate."""

_TAIL = 8
"""Unanswered probes at the end of a train that are no accident, even where half are lost."""

_ACCIDENT = 0.01
"""The chance of a run of losses up to which it is called an outage."""

_POLICED = 0.35
"""The share of quick probes answered below which a limit is suspected, and ..."""

_MOST_MISSED = 1
"""... how many of the gentle ones may be missing for the rate to be what made the difference."""

_FAIR = 1.5
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
    SMALL = "small-packets-only"
    """Packets as large as QUIC's least do not pass."""
    FOREIGN = "no-quic"
    """What answers there is not QUIC."""


SILENT = (
    Udp.BLOCKED,
    Udp.REJECTED,
    Udp.PROHIBITED,
    Udp.UNREACHABLE,
    Udp.SMALL,
    Udp.FOREIGN,
)
"""No probe was answered."""


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
    largest: int = 0
    """Bytes of the largest packet that passes, where ICMP said that it is too small."""
    reordered: float = 0.0
    """The share of answers that came before that to an earlier probe."""
    any_rate: bool = False
    """What is sent slowly was seen to be lost as well."""


_SAID = {
    IcmpKind.PROHIBITED: Udp.PROHIBITED,
    IcmpKind.PORT: Udp.REJECTED,
    IcmpKind.UNREACHABLE: Udp.UNREACHABLE,
}


def next_reach(ledger: Ledger, size: int) -> Train | None:
    """The probes that would tell more, of `size` bytes each; None when all is said."""
    train = _next_row(ledger, size)
    if train is not None or not ledger.answered or ledger.flow(4):
        return train
    if _dies_after(ledger) is not None or _limit(ledger) is not None:
        return None
    lost = _losses(ledger)[0] >= _SUSPICIOUS
    return _row(4, _SLOW, _SLOW_INTERVAL, size) if lost else None


def _next_row(ledger: Ledger, size: int) -> Train | None:
    if not ledger.probes:
        return _row(0, TRAIN, INTERVAL, size)
    first, second = ledger.flow(0), ledger.flow(1)
    if not second:
        if refused(ledger.probes, ledger.icmp) or _healthy(first) or _too_small(ledger):
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
        return _silent(ledger)
    times = [probe.answered - probe.sent for probe in ledger.probes if probe.answered is not None]
    rtt = median(times)
    after = _dies_after(ledger)
    if after is not None:
        udp = Udp.FIRST_PACKET if after == 1 else Udp.DIES
        return Reach(udp, sent, answered, rtt=rtt, after=after)
    rate = _limit(ledger)
    limited = rate is not None and (tcp_rate is None or tcp_rate >= _FAIR * rate)
    loss, outage = _losses(ledger)
    if rate is not None:
        # What a limit drops may look like an outage.
        loss, outage = 1 - answered / sent, 0.0
    slow = ledger.flow(4)
    return Reach(
        Udp.THROTTLED if limited else Udp.OPEN,
        sent,
        answered,
        loss=loss,
        outage=outage,
        rtt=rtt,
        rate=rate or 0.0,
        reordered=_reordered(ledger),
        any_rate=bool(slow) and _share(slow) <= 1 - loss / 2,
    )


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
    return _share(row) >= 0.5 and any(probe.answered is not None for probe in row[-_TAIL:])


def _silent(ledger: Ledger) -> Reach:
    sent = len(ledger.probes)
    for kind, udp in _SAID.items():
        for error in ledger.icmp:
            if error.kind is kind:
                return Reach(udp, sent, 0, loss=1.0, by=error.by)
    if (small := _too_small(ledger)) is not None:
        return Reach(Udp.SMALL, sent, 0, loss=1.0, by=small.by, largest=small.mtu)
    return Reach(Udp.FOREIGN if ledger.strange else Udp.BLOCKED, sent, 0, loss=1.0)


def _too_small(ledger: Ledger) -> Icmp | None:
    """Who said that the path is too small for any probe."""
    least = min(probe.size for probe in ledger.probes)
    for error in ledger.icmp:
        # Old routers do not say what would have passed.
        if error.kind is IcmpKind.TOO_BIG and error.mtu < least and not ledger.answered:
            return error
    return None


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
    rows = [ledger.flow(flow) for flow in (0, 1, 3) if ledger.flow(flow)]
    # The first ones may have found a bucket full.
    rows[0] = rows[0][3:]
    if not _gentle_only(ledger, rows) and not _slow_does_better(ledger):
        return None
    heard = [probe for probe in rows[-1] if probe.answered is not None]
    if len(heard) > _GENTLE:
        # A queue may have let more in than the line takes out meanwhile.
        times = [probe.answered or 0.0 for probe in heard]
        return 8 * sum(probe.size for probe in heard[1:]) / (max(times) - min(times))
    span = rows[-1][-1].sent - rows[-1][0].sent + INTERVAL
    return 8 * rows[-1][0].size * max(len(heard), 0.5) / span


def _gentle_only(ledger: Ledger, rows: Sequence[Sequence[Probe]]) -> bool:
    """Nearly all of the slowest probes pass, and of each quick row only few."""
    return _slow_passes(ledger.flow(2)) and all(_share(row) <= _POLICED for row in rows)


def _slow_does_better(ledger: Ledger) -> bool:
    slow = ledger.flow(4)
    if not slow:
        return False
    loss, missed = _losses(ledger)[0], sum(probe.answered is None for probe in slow)
    chance = sum(
        comb(len(slow), lost) * loss**lost * (1 - loss) ** (len(slow) - lost)
        for lost in range(missed + 1)
    )
    return chance <= _CHANCE


def _share(row: Sequence[Probe]) -> float:
    return sum(probe.answered is not None for probe in row) / len(row)


def _slow_passes(row: Sequence[Probe]) -> bool:
    passed = sum(probe.answered is not None for probe in row)
    return len(row) == _GENTLE and passed >= _GENTLE - _MOST_MISSED


def _reordered(ledger: Ledger) -> float:
    latest, early = 0.0, 0
    for probe in sorted(ledger.probes, key=lambda probe: probe.sent):
        if probe.answered is not None:
            early += probe.answered < latest
            latest = max(latest, probe.answered)
    return early / ledger.answered


def _losses(ledger: Ledger) -> tuple[float, float]:
    """The share lost of quick rows, and the longest time without an answer if it is no accident."""
    probes = [probe for probe in ledger.probes if probe.flow != 4]
    runs: list[list[Probe]] = [[]]
    for probe in sorted(probes, key=lambda probe: probe.sent):
        if probe.answered is None:
            runs[-1].append(probe)
        elif runs[-1]:
            runs.append([])
    longest = max(runs, key=len)
    lost = sum(map(len, runs))
    rest = len(probes) - len(longest)
    loss = (lost - len(longest)) / rest
    if len(longest) < _TAIL or len(probes) * loss ** len(longest) > _ACCIDENT:
        return lost / len(probes), 0.0
    return loss, longest[-1].sent - longest[0].sent + INTERVAL
