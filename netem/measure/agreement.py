"""Two drivers over the same profile: do they do the same? Pure.

Losses agree if the difference of the rates may be nothing, at 99 %; median delays, if they are
within a millisecond. A delay with jitter is a sample itself, so its spread is allowed for. Bursts,
copies, damage and order agree unless chance would hardly set them so far apart.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from netem.measure.expectation import burst_of, memory_of, variance_factor
from netem.measure.plan import Record
from netem.measure.statistics import Direction, Interval, difference
from netem.measure.verdict import (
    DELAY_TOLERANCE,
    FEW,
    SURE,
    SURE_SIGMAS,
    delay_spread,
    order_spread,
)
from netem.profile.conditions import Profile, Way

__all__ = ["LEVEL", "Agreement", "Side", "agreements"]

LEVEL: Final = 0.99
_FEW_BURSTS: Final = 20
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
    apart: tuple[str, ...] = ()
    """Other figures that chance alone would hardly set so far apart (99.9 %)."""

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
        return self.loss_agrees and self.delay_agrees and not self.apart

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
        memory = memory_of(profile.conditions(way))
        spreads = (delay_spread(side.records[way], 0.5, memory) or 0.0 for side in (one, two))
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
        apart=tuple(_apart(profile, way, one, two)),
    )


def _apart(profile: Profile, way: Way, one: Side, two: Side) -> Iterator[str]:
    directions = [side.directions[way] for side in (one, two)]
    if burst_of(profile.conditions(way)) is not None and _bursts_differ(directions):
        yield "bursts"
    for figure, counts in (
        ("copies", [direction.duplicated for direction in directions]),
        ("damage", [direction.corrupted for direction in directions]),
    ):
        first, second = zip(counts, (direction.sent for direction in directions), strict=True)
        if 0.0 not in difference(first, second, SURE):
            yield figure
    if _orders_differ([side.records[way] for side in (one, two)], directions):
        yield "order"


def _bursts_differ(directions: Sequence[Direction]) -> bool:
    bursts = [direction.bursts for direction in directions]
    if min(one.count for one in bursts) < _FEW_BURSTS:
        return False
    # Geometric lengths of mean m have the variance m (m - 1).
    spreads = [math.sqrt(one.mean * (one.mean - 1) / one.count) for one in bursts]
    return abs(bursts[0].mean - bursts[1].mean) > SURE_SIGMAS * math.hypot(*spreads)


def _orders_differ(records: Sequence[Record], directions: Sequence[Direction]) -> bool:
    shares = [one.reordered / one.sent if one.sent else 0.0 for one in directions]
    first, second = ((float(one.reordered), float(one.sent)) for one in directions)
    if 0.0 in difference(first, second, SURE):
        return False
    spread = math.hypot(*(order_spread(record) for record in records))
    return abs(shares[0] - shares[1]) > SURE_SIGMAS * spread


def _median(direction: Direction) -> float | None:
    if direction.delays is None or direction.received < FEW:
        return None
    return direction.delays.median
