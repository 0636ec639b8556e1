"""Between what bounds a difference lies, of which some pairs are known, whatever its distribution.

Both intervals assume no bell: shares of TCP differ by nothing in most seeds and by a lot in
one, where Student's t would see no difference at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean, median
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench.lab.figures.intervals import Estimate, Ground

__all__ = ["mean_difference", "median_difference"]

_EXACT: Final = 12
"""Pairs, up to which all subsets are looked at; above, `_DRAWN` of them."""
_DRAWN: Final = 4095
_DIGITS: Final = 9
"""Below them a difference is floating point's."""


def mean_difference(pairs: Sequence[float], *, confidence: float) -> Estimate:
    """The mean, and the differences that the sign-flip test does not reject.

    If both modes did alike, each pair might as well have had the other sign. The bounds are
    means of subsets of the pairs (J. A. Hartigan, Using subsample values as typical values, 1969),
    exact where differences lie evenly about their middle, as they do if nothing sets the modes
    apart.
    """
    if not _countable(pairs):
        return _without(pairs)
    subsets = _subsets(len(pairs))
    means = np.sort(np.round(subsets @ np.asarray(pairs) / subsets.sum(axis=1), _DIGITS))
    outside = math.floor((1.0 - confidence) / 2 * (len(means) + 1) + 1e-9)
    return _between(fmean(pairs), means, outside, len(pairs))


def median_difference(pairs: Sequence[float], *, confidence: float) -> Estimate:
    """The median, and the differences that the sign test does not reject: exact for any pairs."""
    if not _countable(pairs):
        return _without(pairs)
    ascending = np.sort(np.round(np.asarray(pairs), _DIGITS))
    outside, tail = 0, 0.0
    for fewer in range(len(pairs) // 2):
        tail += math.comb(len(pairs), fewer) / 2 ** len(pairs)
        if 2 * tail <= 1.0 - confidence + 1e-12:
            outside = fewer + 1
    return _between(median(pairs), ascending, outside, len(pairs))


def _countable(pairs: Sequence[float]) -> bool:
    return bool(pairs) and all(map(math.isfinite, pairs))


def _without(pairs: Sequence[float]) -> Estimate:
    """What never came cannot be subtracted."""
    known = [pair for pair in pairs if not math.isnan(pair)]
    infinite = sum(map(math.isinf, known))
    return Estimate(math.nan, math.nan, math.nan, len(known), infinite, Ground.NOTHING)


def _between(value: float, ascending: NDArray[np.float64], outside: int, pairs: int) -> Estimate:
    """From the `outside`th value to the last but so many; without bounds where that is none."""
    if not outside:
        return Estimate(value, -math.inf, math.inf, pairs, 0, Ground.NOTHING)
    low, high = float(ascending[outside - 1]), float(ascending[-outside])
    return Estimate(value, low, high, pairs, 0, Ground.SEEDS)


@lru_cache(maxsize=4)
def _subsets(pairs: int) -> NDArray[np.float64]:
    """One in each row, 1 for what is in it; none is empty."""
    if pairs <= _EXACT:
        numbers = np.arange(1, 2**pairs)
        return ((numbers[:, None] >> np.arange(pairs)) & 1).astype(np.float64)
    drawn = np.random.default_rng(pairs).random((_DRAWN, pairs)) < 0.5
    return drawn[drawn.any(axis=1)].astype(np.float64)
