"""How likely chance alone makes a count as odd as that one, where counts are small: pure.

The intervals of large numbers are wrong for a handful of losses: at 1 % of 100 packets, 5 lost
are outside of their 99.9 % in one run of 300.
"""

import math
from collections.abc import Iterator
from typing import Final

__all__ = ["excess_may_be_chance", "hits_may_be_chance"]

_MOST: Final = 400.0
"""Expected spells, or spells, above which the intervals of large numbers are right."""


def hits_may_be_chance(
    hits: int, trials: int, rate: float, *, sure: float, kept: float = 0.0
) -> bool:
    """Whether so many hits, or more extreme, come by chance more often than `sure` leaves.

    They come in spells whose lengths are geometric: the next trial is a hit, too, with the
    probability `kept`. False as well for what large numbers judge better.
    """
    if rate > 0.5:
        hits, rate = trials - hits, 1.0 - rate
    kept = max(kept, 0.0)
    spells = trials * rate * (1.0 - kept)
    return spells <= _MOST and _inside(hits, _polya_aeppli(spells, kept), sure)


def excess_may_be_chance(hits: int, spells: int, mean: float, *, sure: float) -> bool:
    """The same of the length that `spells` have together, each geometric with this mean."""
    if not 0 < spells <= _MOST:
        return False
    return _inside(hits - spells, _negative_binomial(spells, 1.0 - 1.0 / mean), sure)


def _inside(count: int, distribution: Iterator[float], sure: float) -> bool:
    """Whether neither the tail up to `count` nor the one from it on is too unlikely."""
    below = 0.0
    at = 0.0
    for _ in range(count + 1):
        below += at
        at = next(distribution)
    tail = (1.0 - sure) / 2
    return below + at > tail and 1.0 - below > tail


def _polya_aeppli(spells: float, kept: float) -> Iterator[float]:
    """A Poisson number of spells of geometric lengths."""
    before, last, count = 0.0, math.exp(-spells), 0
    while True:
        yield last
        count += 1
        grown = (spells * (1.0 - kept) + 2 * kept * (count - 1)) * last
        before, last = last, (grown - kept * kept * (count - 2) * before) / count


def _negative_binomial(spells: int, going_on: float) -> Iterator[float]:
    last, count = (1.0 - going_on) ** spells, 0
    while True:
        yield last
        count += 1
        last *= (spells + count - 1) / count * going_on
