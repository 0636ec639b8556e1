"""Measured beside set, figure by figure, and whether they agree: pure.

A figure disagrees when chance would do that in about one measurement of a thousand, or fewer.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from netem.measure.chance import excess_may_be_chance, hits_may_be_chance
from netem.measure.expectation import Expected, expected_of, kept_of, variance_factor
from netem.measure.plan import Record
from netem.measure.statistics import Delays, Direction, Interval, describe, percentile, wilson
from netem.profile.conditions import Profile, Way

__all__ = [
    "DELAY_TOLERANCE",
    "FEW",
    "SURE",
    "SURE_SIGMAS",
    "Row",
    "Unit",
    "compare",
    "delay_spread",
    "order_spread",
]

SURE: Final = 0.999
SURE_SIGMAS: Final = 3.29
"""The same for a normal distribution."""
DELAY_TOLERANCE: Final = 0.001
"""Of a median delay: what the emulator and the measuring may add."""
LATE_TOLERANCE: Final = 0.002
"""Of the delay of the slowest, where it varies: these wait for the machine more often."""
_BATCHES: Final = 20
EDGE: Final = 0.01
"""Seconds by which gaps may lie elsewhere than in virtual time, all together."""
_FEWEST_BATCHES: Final = 8
_MEMORIES: Final = 10.0
_STUDENT: Final = 3.6
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
    seeded: bool = False,
) -> list[Row]:
    """`seeded`: the same packets had the same fates in the model, so it needs no allowance."""
    rows: list[Row] = []
    up = modelled[Way.UP]
    # A server that is to hear nothing has nobody to send to.
    mute = bool(up.sent_at) and not up.arrivals and not measured[Way.UP].received
    for way, direction in measured.items():
        model = modelled[way]
        expected = expected_of(
            profile, way, describe(model.sent_at, model.arrivals), payload, headers
        )
        rows += [
            _loss_row(
                profile, way, direction, expected, records[way], model, mute=mute, seeded=seeded
            ),
            *_burst_rows(way, direction, expected),
            *_delay_rows(way, direction, expected, records[way], model, seeded=seeded),
            *_share_rows(way, direction, expected),
            *_order_rows(way, direction, expected, records[way], model),
        ]
    return rows


def _loss_row(
    profile: Profile,
    way: Way,
    direction: Direction,
    expected: Expected,
    record: Record,
    model: Record,
    *,
    mute: bool,
    seeded: bool,
) -> Row:
    trials = direction.sent / variance_factor(profile.conditions(way))
    agrees: bool | None = None if mute and not direction.sent else False
    if direction.sent:
        sure = wilson(direction.loss * trials, trials, SURE)
        spare = 0.0
        if expected.loss_modelled and seeded:
            lasted = record.sent_at[-1] - record.sent_at[0]
            spare = min(1.0, EDGE / lasted) if lasted else 1.0
        elif expected.loss_modelled:
            spare = SURE_SIGMAS * math.hypot(_loss_spread(record), _loss_spread(model))
        agrees = sure.low - spare - expected.damaged_headers <= expected.loss <= sure.high + spare
        if not expected.loss_modelled:
            agrees = agrees or hits_may_be_chance(
                len(direction.lost),
                direction.sent,
                expected.loss,
                sure=SURE,
                kept=kept_of(profile.conditions(way)),
            )
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
        agrees = abs(
            bursts.mean - expected.burst
        ) <= SURE_SIGMAS * spread + 1 / bursts.count or excess_may_be_chance(
            len(direction.lost), bursts.count, expected.burst, sure=SURE
        )
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
    way: Way,
    direction: Direction,
    expected: Expected,
    record: Record,
    model: Record,
    *,
    seeded: bool,
) -> list[Row]:
    delays = direction.delays
    if delays is None:
        return []
    enough = direction.received >= FEW
    judged = [
        ("delay, median", delays.median, expected.delay, 0.5, DELAY_TOLERANCE),
        ("delay, 95 %", delays.p95, expected.late, 0.95, LATE_TOLERANCE),
    ]
    unknown = 0.0 if seeded else None
    spares = {
        fraction: _delay_spare(expected, record, model, fraction, unknown)
        for *_, fraction, _ in judged
    }
    return [
        *(
            Row(
                way=way,
                figure=figure,
                unit=Unit.MILLISECONDS,
                expected=wanted,
                modelled=wanted is not None and expected.delay_modelled,
                measured=value,
                agrees=_delay_agrees(value, wanted, tolerance, spares[fraction])
                if enough
                else None,
            )
            for figure, value, wanted, fraction, tolerance in judged
        ),
        *_shown_rows(way, delays),
    ]


def _shown_rows(way: Way, delays: Delays) -> Iterator[Row]:
    for figure, value in (
        ("delay, least", delays.least),
        ("delay, 99 %", delays.p99),
        ("jitter, mean step", delays.jitter),
    ):
        yield Row(
            way=way,
            figure=figure,
            unit=Unit.MILLISECONDS,
            expected=None,
            measured=value,
            agrees=None,
        )


def _delay_agrees(
    value: float, wanted: float | None, tolerance: float, spare: float | None
) -> bool | None:
    if wanted is None or spare is None:
        return None
    return abs(value - wanted) <= tolerance + spare


def _delay_spare(
    expected: Expected, record: Record, model: Record, fraction: float, unknown: float | None
) -> float | None:
    """What chance may add to the tolerance; `unknown` where it was too short to tell."""
    if not expected.delay_modelled:
        return 0.0
    spreads = [delay_spread(one, fraction, expected.memory) for one in (record, model)]
    known = [spread for spread in spreads if spread is not None]
    return SURE_SIGMAS * math.hypot(*known) if len(known) == len(spreads) else unknown


def _share_rows(way: Way, direction: Direction, expected: Expected) -> list[Row]:
    """Figures that are fractions of the packets sent, and usually nothing."""
    rows = []
    for figure, count, share in (
        ("duplicated", direction.duplicated, expected.duplicated),
        ("corrupted", direction.corrupted, expected.corrupted),
    ):
        if not count and not share:
            continue
        agrees = False
        if direction.sent:
            agrees = share in wilson(count, direction.sent, SURE) or hits_may_be_chance(
                count, direction.sent, share, sure=SURE
            )
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


def _order_rows(
    way: Way, direction: Direction, expected: Expected, record: Record, model: Record
) -> list[Row]:
    if not direction.reordered and not expected.reordered:
        return []
    share = direction.reordered / direction.sent
    spread = math.hypot(order_spread(record), order_spread(model))
    sure = wilson(direction.reordered, direction.sent, SURE)
    spare = SURE_SIGMAS * spread if expected.reordered else 0.0
    return [
        Row(
            way=way,
            figure="reordered",
            unit=Unit.PERCENT,
            expected=expected.reordered,
            modelled=expected.reordered > 0,
            measured=share,
            interval=wilson(direction.reordered, direction.sent),
            agrees=sure.low - spare <= expected.reordered <= sure.high + spare,
        )
    ]


def order_spread(record: Record) -> float:
    """Standard error of the share that was overtaken, which comes in runs."""
    overtaken = [0.0] * len(record.sent_at)
    highest = -1
    for arrival in record.arrivals:
        if 0 <= arrival.sequence < len(overtaken):
            overtaken[arrival.sequence] = float(arrival.sequence < highest)
            highest = max(highest, arrival.sequence)
    return _spread([sum(batch) / len(batch) for batch in _batches(overtaken)])


def _loss_spread(record: Record) -> float:
    """Standard error of a loss rate whose losses hang together, by means of batches."""
    came = {arrival.sequence for arrival in record.arrivals}
    lost = [float(number not in came) for number in range(len(record.sent_at))]
    return _spread([sum(batch) / len(batch) for batch in _batches(lost)])


def delay_spread(record: Record, fraction: float, memory: float) -> float | None:
    """Standard error of a quantile of the delay, by means of batches.

    None where they would be too few, or so short that each depends on the one before: what keeps
    the order hands the delay of a packet on to those behind it, for `memory` seconds or so.
    """
    delays = [one.at - record.sent_at[one.sequence] for one in record.arrivals]
    count = _BATCHES
    if memory and record.sent_at:
        lasted = record.sent_at[-1] - record.sent_at[0]
        count = min(count, int(lasted / (_MEMORIES * memory)))
    if count < _FEWEST_BATCHES:
        return None
    return _spread([percentile(sorted(batch), fraction) for batch in _batches(delays, count)])


def _batches(values: Sequence[float], count: int = _BATCHES) -> list[Sequence[float]]:
    size = len(values) // count
    return [values[at * size : (at + 1) * size] for at in range(count)] if size else []


def _spread(means: Sequence[float]) -> float:
    """Of the mean of these; of few, as much more as Student's t is wider than the normal."""
    if len(means) < 2:
        return 0.0
    mean = sum(means) / len(means)
    variance = sum((one - mean) ** 2 for one in means) / (len(means) - 1)
    return math.sqrt(variance / len(means)) * (1 + _STUDENT / (len(means) - 1))
