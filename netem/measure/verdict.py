"""Measured beside set, figure by figure, and whether they agree: pure.

A figure disagrees when chance would do that in less than one measurement of a thousand.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from netem.measure.expectation import Expected, expected_of, variance_factor
from netem.measure.plan import Record
from netem.measure.statistics import Direction, Interval, describe, percentile, wilson
from netem.profile.conditions import Profile, Way

__all__ = ["DELAY_TOLERANCE", "FEW", "Row", "Unit", "compare", "median_spread"]

SURE: Final = 0.999
_SIGMAS: Final = 3.29
"""The same for a normal distribution."""
DELAY_TOLERANCE: Final = 0.001
"""Of a median delay: what the emulator and the measuring may add."""
_BATCHES: Final = 20
FEW: Final = 100
"""Fewer packets do not make a median: the first of a path are slow, while caches are cold."""


class Unit(StrEnum):
    PERCENT = "%"
    PACKETS = "packets"
    MILLISECONDS = "ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure of one direction, in packets, seconds or as a fraction."""

    way: Way
    figure: str
    unit: Unit
    expected: float | None
    modelled: bool = False
    """Whether `expected` comes from the link in virtual time and not from a formula."""
    measured: float | None
    interval: Interval | None = None
    """Where the measured figure lies at 95 %."""
    agrees: bool | None
    """None: shown, not judged."""


def compare(
    profile: Profile,
    measured: Mapping[Way, Direction],
    records: Mapping[Way, Record],
    modelled: Mapping[Way, Record],
    *,
    payload: int,
    headers: int,
) -> list[Row]:
    rows: list[Row] = []
    for way, direction in measured.items():
        model = modelled[way]
        expected = expected_of(
            profile, way, describe(model.sent_at, model.arrivals), payload, headers
        )
        rows += [
            _loss_row(profile, way, direction, expected, records[way], model),
            *_burst_rows(way, direction, expected),
            *_delay_rows(way, direction, expected, records[way], model),
            *_share_rows(way, direction, expected),
        ]
    return rows


def _loss_row(
    profile: Profile,
    way: Way,
    direction: Direction,
    expected: Expected,
    record: Record,
    model: Record,
) -> Row:
    trials = direction.sent / variance_factor(profile.conditions(way))
    agrees = False
    if direction.sent:
        sure = wilson(direction.loss * trials, trials, SURE)
        spare = 0.0
        if expected.loss_modelled:
            spare = _SIGMAS * math.hypot(_loss_spread(record), _loss_spread(model))
        agrees = sure.low - spare - expected.damaged_headers <= expected.loss <= sure.high + spare
    return Row(
        way=way,
        figure="loss",
        unit=Unit.PERCENT,
        expected=expected.loss,
        modelled=expected.loss_modelled,
        measured=direction.loss if direction.sent else None,
        interval=wilson(direction.loss * trials, trials),
        agrees=agrees,
    )


def _burst_rows(way: Way, direction: Direction, expected: Expected) -> list[Row]:
    bursts = direction.bursts
    if not bursts.count:
        return []
    agrees = None
    if expected.burst is not None and not expected.damaged_headers:
        # Geometric lengths of mean m have the variance m (m - 1).
        spread = math.sqrt(expected.burst * (expected.burst - 1) / bursts.count)
        agrees = abs(bursts.mean - expected.burst) <= _SIGMAS * spread + 1 / bursts.count
    return [
        Row(
            way=way,
            figure="burst, mean",
            unit=Unit.PACKETS,
            expected=expected.burst,
            measured=bursts.mean,
            agrees=agrees,
        )
    ]


def _delay_rows(
    way: Way, direction: Direction, expected: Expected, record: Record, model: Record
) -> list[Row]:
    delays = direction.delays
    if delays is None:
        return []
    agrees = None
    if expected.delay is not None and direction.received >= FEW:
        spare = DELAY_TOLERANCE
        if expected.delay_modelled:
            spare += _SIGMAS * math.hypot(median_spread(record), median_spread(model))
        agrees = abs(delays.median - expected.delay) <= spare
    shown = [("delay, least", delays.least), ("delay, 95 %", delays.p95)]
    shown += [("delay, 99 %", delays.p99), ("jitter, mean step", delays.jitter)]
    return [
        Row(
            way=way,
            figure="delay, median",
            unit=Unit.MILLISECONDS,
            expected=expected.delay,
            modelled=expected.delay_modelled,
            measured=delays.median,
            agrees=agrees,
        ),
        *(
            Row(
                way=way,
                figure=figure,
                unit=Unit.MILLISECONDS,
                expected=None,
                measured=value,
                agrees=None,
            )
            for figure, value in shown
        ),
    ]


def _share_rows(way: Way, direction: Direction, expected: Expected) -> list[Row]:
    """Figures that are fractions of the packets sent, and usually nothing."""
    rows = []
    for figure, count, share in (
        ("duplicated", direction.duplicated, expected.duplicated),
        ("corrupted", direction.corrupted, expected.corrupted),
        ("reordered", direction.reordered, None),
    ):
        if not count and not share:
            continue
        agrees = None
        if share is not None:
            agrees = share in wilson(count, direction.sent, SURE)
        rows.append(
            Row(
                way=way,
                figure=figure,
                unit=Unit.PERCENT,
                expected=share,
                measured=count / direction.sent if direction.sent else None,
                interval=wilson(count, direction.sent),
                agrees=agrees,
            )
        )
    return rows


def _loss_spread(record: Record) -> float:
    """Standard error of a loss rate whose losses hang together, by means of batches."""
    came = {arrival.sequence for arrival in record.arrivals}
    lost = [float(number not in came) for number in range(len(record.sent_at))]
    return _spread([sum(batch) / len(batch) for batch in _batches(lost)])


def median_spread(record: Record) -> float:
    """Standard error of the median delay, by means of batches."""
    delays = [one.at - record.sent_at[one.sequence] for one in record.arrivals]
    return _spread([percentile(sorted(batch), 0.5) for batch in _batches(delays)])


def _batches(values: Sequence[float]) -> list[Sequence[float]]:
    size = len(values) // _BATCHES
    return [values[at * size : (at + 1) * size] for at in range(_BATCHES)] if size else []


def _spread(means: Sequence[float]) -> float:
    """Of the mean of these."""
    if len(means) < 2:
        return 0.0
    mean = sum(means) / len(means)
    variance = sum((one - mean) ** 2 for one in means) / (len(means) - 1)
    return math.sqrt(variance / len(means))
