"""What a profile sets, as figures that a measurement can be held to: pure.

Where a formula gives the figure it is the formula's, so that the link is not judged by itself.
Where none does it is what the link of `netem.link` does in virtual time to packets sent at the
same times ("modelled").
"""

from dataclasses import dataclass
from typing import Final

from netem.measure.statistics import Direction
from netem.profile.conditions import Conditions, GilbertElliott, Profile, RandomLoss, Way

__all__ = ["Expected", "burst_of", "expected_of", "loss_of", "variance_factor"]

_ETHERNET: Final = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Of one direction; None: the profile says nothing about it that could be held against it."""

    loss: float
    loss_modelled: bool
    burst: float | None
    delay: float | None
    delay_modelled: bool
    duplicated: float
    corrupted: float
    damaged_headers: float
    """At most this share of packets is damaged in its headers, and so may count as lost."""


def expected_of(
    profile: Profile, way: Way, modelled: Direction, payload: int, headers: int
) -> Expected:
    conditions = profile.conditions(way)
    by_formula = not _depends_on_time(profile, conditions)
    at_rest = by_formula and conditions.jitter is None and not conditions.reorder
    whole = payload + headers
    return Expected(
        loss=loss_of(conditions) if by_formula else modelled.loss,
        loss_modelled=not by_formula,
        burst=burst_of(conditions) if by_formula else None,
        delay=conditions.delay
        if at_rest
        else (modelled.delays.median if modelled.delays else None),
        delay_modelled=not at_rest,
        duplicated=conditions.duplicate * (1 - loss_of(conditions)) if by_formula else 0.0,
        corrupted=conditions.corrupt * payload / whole,
        damaged_headers=conditions.corrupt * (headers + _ETHERNET) / (whole + _ETHERNET),
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


def variance_factor(conditions: Conditions) -> float:
    """How much wider the interval of a loss rate is than with packets lost each alone.

    The state of a Gilbert model keeps 1 - p - r of itself from packet to packet.
    """
    match conditions.loss:
        case GilbertElliott(to_bad=p, to_good=r) if 0 < p + r < 1:
            kept = 1 - p - r
            return (1 + kept) / (1 - kept)
    return 1.0


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
