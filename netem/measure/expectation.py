"""What a profile sets, as figures that a measurement can be held to: pure.

Where a formula gives the figure it is the formula's, so that the link is not judged by itself.
Where none does it is what the link of `netem.link` does in virtual time to packets sent at the
same times ("modelled").
"""

from dataclasses import dataclass
from typing import Final

from netem.measure.statistics import Direction
from netem.profile.conditions import Conditions, GilbertElliott, Profile, RandomLoss, Way

__all__ = [
    "Expected",
    "burst_of",
    "expected_of",
    "kept_of",
    "loss_of",
    "memory_of",
    "variance_factor",
]

_ETHERNET: Final = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Of one direction; None: the profile says nothing about it that could be held against it."""

    loss: float
    loss_modelled: bool
    burst: float | None
    delay: float | None
    delay_modelled: bool
    late: float | None
    """The delay of the 95th of 100 packets; None where it is nothing but the machine's."""
    memory: float
    """Seconds for which a delay says something about those of the packets behind."""
    duplicated: float
    corrupted: float
    reordered: float
    """None unless the profile says so: a packet that overtakes is no chance."""
    damaged_headers: float
    """At most this share of packets is damaged in its headers, and so may count as lost."""


def expected_of(
    profile: Profile, way: Way, modelled: Direction, payload: int, headers: int
) -> Expected:
    """`headers` 0: bits are turned in payloads alone, as by a relay."""
    conditions = profile.conditions(way)
    by_formula = not _depends_on_time(profile, conditions)
    at_rest = by_formula and conditions.jitter is None and not conditions.reorder
    frame = headers + _ETHERNET if headers else 0
    loss = loss_of(conditions) if by_formula else modelled.loss
    duplicated = modelled.duplicated / modelled.sent if modelled.sent else 0.0
    return Expected(
        loss=loss,
        loss_modelled=not by_formula,
        burst=burst_of(conditions) if by_formula else None,
        delay=conditions.delay
        if at_rest
        else (modelled.delays.median if modelled.delays else None),
        delay_modelled=not at_rest,
        memory=memory_of(conditions),
        late=modelled.delays.p95 if modelled.delays and conditions.jitter is not None else None,
        duplicated=conditions.duplicate * (1 - loss) if by_formula else duplicated,
        corrupted=conditions.corrupt * (1 - loss) * payload / (payload + headers),
        reordered=modelled.reordered / modelled.sent if modelled.sent else 0.0,
        damaged_headers=conditions.corrupt * frame / (payload + frame),
    )


def loss_of(conditions: Conditions) -> float:
    """Of the packet-clocked kinds, in the long run."""
    match conditions.loss:
        case None:
            return 0.0
        case RandomLoss(rate=rate):
            return rate
        case GilbertElliott(to_bad=p, to_good=r, loss_bad=bad, loss_good=good):
            share = p / (p + r) if p + r else 0.0
            return share * bad + (1 - share) * good


def burst_of(conditions: Conditions) -> float | None:
    """Mean run of packets lost one after the other; None where there is no simple formula."""
    match conditions.loss:
        case RandomLoss(rate=rate) if 0 < rate < 1:
            return 1 / (1 - rate)
        case GilbertElliott(to_good=r, loss_bad=1.0, loss_good=0.0) if r:
            # Each visit to the good state passes a packet, so two bad spells never touch.
            return 1 / r
    return None


def memory_of(conditions: Conditions) -> float:
    """Seconds for which jitter is handed on: it holds up what is behind."""
    return conditions.jitter.spread if conditions.jitter is not None else 0.0


def kept_of(conditions: Conditions) -> float:
    """What the state of a Gilbert model keeps of itself from packet to packet."""
    match conditions.loss:
        case GilbertElliott(to_bad=p, to_good=r) if 0 < p + r < 1:
            return 1 - p - r
    return 0.0


def variance_factor(conditions: Conditions) -> float:
    """How much wider the interval of a loss rate is than with packets lost each alone."""
    kept = kept_of(conditions)
    return (1 + kept) / (1 - kept)


def _depends_on_time(profile: Profile, conditions: Conditions) -> bool:
    """Whether what is lost or late depends on when, or on the packets before."""
    return bool(
        conditions.fades
        or conditions.blackouts
        or conditions.bottleneck
        or conditions.mtu
        or profile.block
        or profile.police
        or profile.nat
    )
