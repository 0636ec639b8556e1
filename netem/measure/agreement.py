"""Two drivers over the same profile: do they do the same? Pure.

Losses agree if the difference of the rates may be nothing, at 99 %; median delays, if they are
within a millisecond. A delay with jitter is a sample itself, so its spread is allowed for.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from netem.measure.expectation import variance_factor
from netem.measure.plan import Record
from netem.measure.statistics import Direction, Interval, difference
from netem.measure.verdict import DELAY_TOLERANCE, FEW, median_spread
from netem.profile.conditions import Profile, Way

__all__ = ["LEVEL", "Agreement", "Side", "agreements"]

LEVEL: Final = 0.99
_SIGMAS: Final = 2.58
"""The same for a normal distribution."""


@dataclass(frozen=True, slots=True)
class Side:
    """What one driver did."""

    directions: Mapping[Way, Direction]
    records: Mapping[Way, Record]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """One direction of one profile, through two drivers."""

    profile: str
    way: Way
    ipv6: bool
    sent: tuple[int, int]
    loss: tuple[float, float]
    gap: Interval
    """Of the losses' difference, at `LEVEL`."""
    burst: tuple[float, float]
    delay: tuple[float | None, float | None]
    """Medians; None where too few packets came for one."""
    floor: float
    """Of the second driver's delay, with nothing on its path, which is not taken off `delay`."""
    delay_spare: float
    """What chance may add to the tolerance of the delay."""

    @property
    def loss_agrees(self) -> bool:
        return 0.0 in self.gap

    @property
    def delay_agrees(self) -> bool:
        """Neither has one, or both the same."""
        return self._within(0.0)

    @property
    def delay_agrees_above_floor(self) -> bool:
        return self._within(self.floor)

    @property
    def agrees(self) -> bool:
        return self.loss_agrees and self.delay_agrees

    def _within(self, floor: float) -> bool:
        first, second = self.delay
        if first is None or second is None:
            return first is second
        return abs(second - floor - first) <= DELAY_TOLERANCE + self.delay_spare


def agreements(
    profile: Profile, one: Side, two: Side, floors: Mapping[Way, float], *, ipv6: bool
) -> list[Agreement]:
    return [
        _agreement(profile, way, one, two, floors.get(way, 0.0), ipv6=ipv6)
        for way in one.directions
    ]


def _agreement(
    profile: Profile, way: Way, one: Side, two: Side, floor: float, *, ipv6: bool
) -> Agreement:
    factor = variance_factor(profile.conditions(way))
    first, second = one.directions[way], two.directions[way]
    counts = [
        (direction.loss * direction.sent / factor, direction.sent / factor)
        for direction in (first, second)
    ]
    spare = 0.0
    if profile.conditions(way).jitter is not None:
        spreads = (median_spread(side.records[way]) for side in (one, two))
        spare = _SIGMAS * math.hypot(*spreads)
    return Agreement(
        profile=profile.name,
        way=way,
        ipv6=ipv6,
        sent=(first.sent, second.sent),
        loss=(first.loss, second.loss),
        gap=difference(counts[0], counts[1], LEVEL),
        burst=(first.bursts.mean, second.bursts.mean),
        delay=(_median(first), _median(second)),
        floor=floor,
        delay_spare=spare,
    )


def _median(direction: Direction) -> float | None:
    if direction.delays is None or direction.received < FEW:
        return None
    return direction.delays.median
