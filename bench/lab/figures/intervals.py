"""Between what bounds a mean lies, of which some seeds are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from statistics import NormalDist, fmean, median, stdev
from typing import Final

__all__ = [
    "CONFIDENCE",
    "Estimate",
    "Ground",
    "estimate",
    "share_estimate",
    "t_quantile",
    "typical",
]

CONFIDENCE: Final = 0.95


class Ground(Enum):
    """What an interval rests on."""

    SEEDS = "seeds"
    """The spread of the seeds' values."""
    FRAMES = "frames"
    """All frames as if each stood alone: where the seeds do not differ, t would give a width of
    nothing.
    """
    RANGE = "range"
    """The least and the largest of the seeds, around their median: no interval."""
    NOTHING = "nothing"
    """Too few seeds, or a value that is not finite."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean over seeds, infinite if it is so for any of them, or their median; NaN for none."""

    value: float
    low: float
    high: float
    seeds: int
    """That have a value."""
    infinite: int
    """Seeds among them where what was waited for never came."""
    ground: Ground


_NONE: Final = Estimate(math.nan, math.nan, math.nan, 0, 0, Ground.NOTHING)


def estimate(
    values: Sequence[float],
    *,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    confidence: float = CONFIDENCE,
) -> Estimate:
    """An interval for the mean of what the values were drawn from; NaN is no value.

    Student's t, longer to the side where the values trail off: losses come in few seeds, and many
    at once, and a sample that missed such a seed has its mean too low.
    """
    known = [value for value in values if not math.isnan(value)]
    infinite = sum(math.isinf(value) for value in known)
    if not known:
        return _NONE
    value = math.inf if infinite else fmean(known)
    if infinite or len(known) < 2:
        return Estimate(value, math.nan, math.nan, len(known), infinite, Ground.NOTHING)
    error = stdev(known) / math.sqrt(len(known))
    t, skew = t_quantile(confidence, len(known) - 1), _skewness(known) / math.sqrt(len(known))
    low = max(bounds[0], value - error * max(t, _unskewed(t, skew)))
    high = min(bounds[1], value + error * max(t, -_unskewed(-t, skew)))
    return Estimate(value, min(low, value), max(high, value), len(known), 0, Ground.SEEDS)


def _skewness(values: Sequence[float]) -> float:
    middle, spread = fmean(values), stdev(values)
    return fmean(((value - middle) / spread) ** 3 for value in values) if spread > 0 else 0.0


def _unskewed(t: float, skew: float) -> float:
    """Hall's cubic, inverted (P. Hall, On the removal of skewness by transformation, 1992).

    `skew` is the skewness over the root of the number of values.
    """
    if abs(skew) < 1e-6:
        return t
    return 3 / skew * (math.cbrt(1 + skew * (t - skew / 6)) - 1)


def typical(values: Sequence[float]) -> Estimate:
    """The median of the seeds with their least and their largest value; NaN is no value."""
    known = sorted(value for value in values if not math.isnan(value))
    if not known:
        return _NONE
    infinite = sum(math.isinf(value) for value in known)
    ground = Ground.RANGE if len(known) > 1 else Ground.NOTHING
    return Estimate(median(known), known[0], known[-1], len(known), infinite, ground)


def share_estimate(values: Sequence[float], frames: int) -> Estimate:
    """The interval of a share, within 0 and 1; `frames` are those of all seeds together.

    Seeds that agree to the frame, as all do where nothing was lost, say nothing about their
    spread: then the frames bound the share, exactly for 0 and 1 and by Wilson's interval else.
    """
    found = estimate(values, bounds=(0.0, 1.0))
    if not found.seeds or (found.ground is Ground.SEEDS and found.high > found.low):
        return found
    if found.ground is Ground.NOTHING and found.value not in {0.0, 1.0}:
        return found
    low, high = _of_frames(found.value, frames)
    return Estimate(found.value, low, high, found.seeds, 0, Ground.FRAMES)


def _of_frames(share: float, frames: int) -> tuple[float, float]:
    rest = (1.0 - CONFIDENCE) ** (1.0 / frames)
    if share <= 0.0:
        return 0.0, 1.0 - rest
    if share >= 1.0:
        return rest, 1.0
    z = NormalDist().inv_cdf((1.0 + CONFIDENCE) / 2)
    widened = 1.0 + z * z / frames
    middle = (share + z * z / (2 * frames)) / widened
    spread = math.sqrt(share * (1.0 - share) / frames + z * z / (4 * frames * frames))
    return middle - z * spread / widened, middle + z * spread / widened


@lru_cache(maxsize=256)
def t_quantile(confidence: float, freedom: int) -> float:
    """How many standard errors Student's distribution keeps, to both sides, with `confidence`."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def _within(t: float, freedom: int) -> float:
    """The probability of [-t, t] (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine = math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for above in range(2 + odd, freedom - 1, 2):
        term *= cosine * cosine * (above - 1) / above
        total += term
    if odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total
