"""From what was sent and what came, the figures: pure.

Times are seconds, of one clock. Sequences count from 0.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import Final, NamedTuple

__all__ = [
    "Arrival",
    "Bursts",
    "Delays",
    "Direction",
    "Interval",
    "bursts_of",
    "describe",
    "difference",
    "percentile",
    "wilson",
]

CONFIDENCE: Final = 0.95
"""Of the intervals that are shown."""


class Arrival(NamedTuple):
    """A packet that came, in the order of coming."""

    sequence: int
    at: float
    intact: bool = True


class Interval(NamedTuple):
    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Bursts:
    """Runs of packets lost one after the other."""

    count: int
    mean: float
    longest: int
    lengths: tuple[tuple[int, int], ...]
    """(length, how many), from short to long."""


@dataclass(frozen=True, slots=True)
class Delays:
    """Of the packets that came, each once; a packet lost has no delay and is not in here."""

    least: float
    median: float
    p95: float
    p99: float
    greatest: float
    jitter: float
    """Mean change from one packet to the next (without the smoothing of RFC 3550)."""


@dataclass(frozen=True, slots=True)
class Direction:
    """What one direction did to the packets of a measurement."""

    sent: int
    received: int
    """Different packets that came, damaged or not."""
    lost: tuple[int, ...]
    loss: float
    loss_interval: Interval
    bursts: Bursts
    delays: Delays | None
    duplicated: int
    """Copies beyond the first."""
    reordered: int
    """Packets that came after one sent later (RFC 4737, section 3.3)."""
    corrupted: int


def describe(sent_at: Sequence[float], arrivals: Sequence[Arrival]) -> Direction:
    """The figures of a direction; `sent_at[n]` is when packet n was sent."""
    first: dict[int, Arrival] = {}
    reordered = 0
    highest = -1
    for arrival in arrivals:
        if not 0 <= arrival.sequence < len(sent_at) or arrival.sequence in first:
            continue
        first[arrival.sequence] = arrival
        reordered += arrival.sequence < highest
        highest = max(highest, arrival.sequence)
    known = sum(0 <= arrival.sequence < len(sent_at) for arrival in arrivals)
    lost = tuple(number for number in range(len(sent_at)) if number not in first)
    return Direction(
        sent=len(sent_at),
        received=len(first),
        lost=lost,
        loss=len(lost) / len(sent_at) if sent_at else 0.0,
        loss_interval=wilson(len(lost), len(sent_at)),
        bursts=bursts_of(lost),
        delays=_delays_of([(one.at - sent_at[one.sequence]) for one in first.values()]),
        duplicated=known - len(first),
        reordered=reordered,
        corrupted=sum(not arrival.intact for arrival in first.values()),
    )


def bursts_of(lost: Sequence[int]) -> Bursts:
    """The runs in an ascending list of lost sequences."""
    lengths: list[int] = []
    previous = None
    for number in lost:
        if previous is not None and number == previous + 1:
            lengths[-1] += 1
        else:
            lengths.append(1)
        previous = number
    histogram = tuple(sorted(Counter(lengths).items()))
    mean = len(lost) / len(lengths) if lengths else 0.0
    return Bursts(len(lengths), mean, max(lengths, default=0), histogram)


def wilson(hits: float, trials: float, confidence: float = CONFIDENCE) -> Interval:
    """Where a rate lies of which `hits` in `trials` are known (Wilson 1927).

    Unlike the simple interval it is right at 0 and at 1. Numbers need not be whole: trials that
    hang together count for fewer.
    """
    if trials <= 0:
        return Interval(0.0, 1.0)
    z = _z(confidence)
    rate = hits / trials
    middle = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    spread = math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    half = z / (1 + z * z / trials) * spread
    # At its ends the interval is exact, whatever the floating point says.
    low = 0.0 if hits <= 0 else middle - half
    high = 1.0 if hits >= trials else middle + half
    return Interval(low, high)


def difference(
    one: tuple[float, float], two: tuple[float, float], confidence: float = CONFIDENCE
) -> Interval:
    """Where the difference of two rates lies, each given as (hits, trials).

    Newcombe 1998, method 10: the two Wilson intervals put together. The rates agree, at that
    confidence, if 0 lies in it.
    """
    rates = [hits / trials if trials else 0.0 for hits, trials in (one, two)]
    first, second = wilson(*one, confidence), wilson(*two, confidence)
    gap = rates[0] - rates[1]
    low = math.hypot(rates[0] - first.low, second.high - rates[1])
    high = math.hypot(first.high - rates[0], rates[1] - second.low)
    return Interval(gap - low, gap + high)


def percentile(ascending: Sequence[float], fraction: float) -> float:
    """The smallest value that at least `fraction` of the values do not exceed."""
    return ascending[max(0, math.ceil(fraction * len(ascending)) - 1)]


def _delays_of(delays: Sequence[float]) -> Delays | None:
    if not delays:
        return None
    ascending = sorted(delays)
    changes = [abs(after - before) for before, after in pairwise(delays)]
    return Delays(
        least=ascending[0],
        median=percentile(ascending, 0.5),
        p95=percentile(ascending, 0.95),
        p99=percentile(ascending, 0.99),
        greatest=ascending[-1],
        jitter=sum(changes) / len(changes) if changes else 0.0,
    )


def _z(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)
