"""How late each frame was, above the least delay that its path allows.

Lateness is in seconds, to 10 us. A frame that never came is infinitely late: it is in
every figure, and no quantile is flattered by leaving it out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.lab.record import Flow
from tenuto.media import FRAME_DURATION

__all__ = ["Lateness", "floor_of", "jitter", "late", "quantile", "scheduled", "silence"]

_GAIN: Final = 1 / 16
"""RFC 3550, section 6.4.1."""

_DIGITS: Final = 5
"""Those to which delays are recorded, so that a record read again says the same."""

Lateness: TypeAlias = NDArray[np.float64]


def floor_of(flows: Iterable[Flow]) -> float | None:
    """The smallest delay of any frame of these flows; None where none came."""
    delays = (delay for flow in flows for delay in flow.delays if delay is not None)
    least = min(delays, default=None)
    return None if least is None else round(least, _DIGITS)


def scheduled(seconds: float) -> int:
    """Frames in so much audio."""
    return max(1, round(seconds / FRAME_DURATION))


def late(delays: Sequence[float | None], frames: int, floor: float | None) -> Lateness:
    """The lateness of each of the `frames` that were due, in the order of the schedule.

    What a flow that ended early says nothing about did not come either.
    """
    values = np.full(max(frames, len(delays)), np.inf)
    told = [np.inf if delay is None else delay for delay in delays]
    values[: len(told)] = np.round(np.asarray(told, dtype=np.float64), _DIGITS) - (floor or 0.0)
    return np.round(values, 6)


def quantile(ascending: Lateness, fraction: float) -> float:
    """The smallest value that at least `fraction` of the values do not exceed."""
    rank = math.ceil(round(fraction * len(ascending), 6))
    return float(ascending[max(rank, 1) - 1])


def jitter(lateness: Lateness) -> float:
    """The interarrival jitter of RFC 3550, section 6.4.1, meaned over all arrivals.

    It leaves out what never came and hardly sees a delay that stays, so it is never shown without
    the share that never came. NaN for fewer than two arrivals.
    """
    arrived = _in_order_of_arrival(lateness)
    if len(arrived) < 2:
        return math.nan
    estimate = total = 0.0
    for before, after in pairwise(arrived):
        estimate += (abs(after - before) - estimate) * _GAIN
        total += estimate
    return total / (len(arrived) - 1)


def _in_order_of_arrival(lateness: Lateness) -> list[float]:
    order = np.argsort(np.arange(len(lateness)) * FRAME_DURATION + lateness, kind="stable")
    ordered: list[float] = lateness[order].tolist()
    return [value for value in ordered if math.isfinite(value)]


def silence(lateness: Lateness) -> float:
    """The longest time without an arrival.

    It is looked for between the earliest moments at which the first and the last frame could have
    come, so that a flow which begins late or ends early has its silence counted.
    """
    last = (len(lateness) - 1) * FRAME_DURATION
    times = np.sort(np.arange(len(lateness)) * FRAME_DURATION + lateness)
    times = times[np.isfinite(times)]
    arrivals = np.concatenate(([0.0], times, [max(last, *times[-1:].tolist(), 0.0)]))
    return round(float(np.max(np.diff(arrivals))), 6)
