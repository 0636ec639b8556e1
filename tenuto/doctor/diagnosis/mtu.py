"""The largest packet that passes towards the server, searched as in RFC 8899 section 5.3."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, log

from tenuto.doctor.diagnosis.evidence import IcmpKind, Ledger
from tenuto.doctor.diagnosis.train import Order, Train

__all__ = ["ETHERNET", "PathMtu", "judge_mtu", "next_mtu"]

ETHERNET = 1500
"""Bytes of the largest packet tried; doctor does not look for jumbo frames."""

_SPACING = 0.025
"""Seconds between two packets of a search."""

_STEPS = 3
"""Sizes tried at a time between one that passes and one that does not."""

_MOST_ROUNDS = 12
_MOST_PACKETS = 600
"""Sent before the last round: 1.3 MB at most in all, where most are lost."""

_FEWEST_TRIES, _MOST_TRIES = 4, 16

_DOUBT = 1e-4
"""The chance, for each size, that all its tries were lost by accident."""


@dataclass(frozen=True, slots=True)
class PathMtu:
    """`told`: ICMP said so. Without that, larger packets vanish: a black hole."""

    size: int
    told: bool
    by: str = ""
    here: bool = False
    """The limit is that of this machine's own interface."""

    @property
    def limited(self) -> bool:
        return self.size < ETHERNET


@dataclass(frozen=True, slots=True)
class _Known:
    good: int
    bad: int
    told: int
    by: str
    here: bool


def next_mtu(ledger: Ledger, base: int, loss: float) -> Train | None:
    """The next packets of a search, each flow being one round of it.

    `base` is a size that passes and `loss` the share of round trips that fail at that size.
    Each try of other sizes has one of `base` with it: a try counts if that one is answered, so
    that an outage is not taken for a packet too big.
    """
    rounds = max((probe.flow for probe in ledger.probes), default=-1) + 1
    if rounds >= _MOST_ROUNDS or len(ledger.probes) > _MOST_PACKETS:
        return None
    known = _known(ledger, base, loss)
    if not rounds:
        return _round(0, (ETHERNET,), base, loss)
    if known.bad > ETHERNET:
        return None if known.good == ETHERNET else _round(rounds, (ETHERNET,), base, loss)
    if known.bad - known.good <= 1:
        return None
    if known.good < known.told < known.bad and not _tried(ledger, known.told):
        return _round(rounds, (known.told, known.told + 1)[: known.bad - known.told], base, loss)
    return _round(rounds, _between(known.good, known.bad), base, loss)


def judge_mtu(ledger: Ledger, base: int, loss: float) -> PathMtu | None:
    """None where nothing of it is certain."""
    known = _known(ledger, base, loss)
    if known.bad - known.good > 1 and known.good < ETHERNET:
        return None
    # A router may name what passes it, and a narrower one behind it be silent.
    told = known.told == known.good
    return PathMtu(known.good, told, known.by if told else "", known.here and told)


def _known(ledger: Ledger, base: int, loss: float) -> _Known:
    answered = [probe.size for probe in ledger.probes if probe.answered is not None]
    good = max([base, *answered])
    tries = _tries(loss)
    failed: dict[int, int] = {}
    control = False
    for probe in ledger.probes:
        if probe.size == base:
            control = probe.answered is not None
        elif control and probe.answered is None:
            failed[probe.size] = failed.get(probe.size, 0) + 1
    bad = min(
        (size for size, count in failed.items() if size > good and count >= tries),
        default=ETHERNET + 1,
    )
    told = [error for error in ledger.icmp if error.kind is IcmpKind.TOO_BIG and error.mtu]
    least = min(told, key=lambda error: error.mtu, default=None)
    if least is None:
        return _Known(good, bad, 0, "", False)
    return _Known(good, bad, least.mtu, least.by, not least.by)


def _tries(loss: float) -> int:
    """So many that all of them are hardly ever lost by accident."""
    if loss <= 0:
        return _FEWEST_TRIES
    wanted = ceil(log(_DOUBT) / log(min(loss, 0.99)))
    return min(max(wanted, _FEWEST_TRIES), _MOST_TRIES)


def _between(good: int, bad: int) -> tuple[int, ...]:
    gap = bad - good
    inside = {good + gap * step // (_STEPS + 1) for step in range(1, _STEPS + 1)}
    return tuple(sorted(inside - {good, bad}))


def _tried(ledger: Ledger, size: int) -> bool:
    return any(probe.size == size for probe in ledger.probes)


def _round(flow: int, sizes: Iterable[int], base: int, loss: float) -> Train:
    # Two more tries than must count, for some controls will be lost.
    tries = ceil((_tries(loss) + 2) / max(1 - loss, 0.25))
    row = [base, *sizes]
    orders = [
        Order((turn * len(row) + place) * _SPACING, flow, turn * len(row) + place, size)
        for turn in range(tries)
        for place, size in enumerate(row)
    ]
    return Train(tuple(orders))
