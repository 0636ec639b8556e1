"""How modes differ over the same seeds, and when a difference may be called one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from bench.lab.figures.catalogue import Figure, resolution
from bench.lab.figures.intervals import CONFIDENCE, Estimate
from bench.lab.figures.paired import mean_difference, median_difference

__all__ = ["FEWEST_PAIRS", "Comparison", "Verdict", "compare"]

FEWEST_PAIRS: Final = 10
"""Seeds that both modes ran with, below which nothing is called better or worse."""


class Verdict(Enum):
    BETTER = "better"
    WORSE = "worse"
    NOT_SHOWN = "no difference shown"
    TOO_SMALL = "too small to matter"
    """Beyond chance, but below what the figure resolves."""
    TOO_FEW = "too few seeds"
    UNKNOWN = "cannot be compared"
    """What was waited for never came in one of them."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A mode's figure less that of the baseline, seed by seed."""

    figure: Figure
    difference: Estimate
    verdict: Verdict

    @property
    def word(self) -> str:
        """Of the verdict, as this figure has it."""
        better, worse = self.figure.words
        return {Verdict.BETTER: better, Verdict.WORSE: worse}.get(self.verdict, self.verdict.value)


def compare(
    figure: Figure,
    values: Mapping[int, float],
    baseline: Mapping[int, float],
    *,
    comparisons: int,
    frames: int,
) -> Comparison:
    """`values` and `baseline` are by seed; only seeds of both are used.

    Bonferroni: the interval is so wide that all of the `comparisons` hold together with 95 %.
    """
    pairs = [values[seed] - baseline[seed] for seed in sorted(values.keys() & baseline.keys())]
    confidence = 1.0 - (1.0 - CONFIDENCE) / max(comparisons, 1)
    difference = median_difference if figure.typical else mean_difference
    found = difference(pairs, confidence=confidence)
    return Comparison(figure, found, _verdict(figure, found, len(pairs), frames))


def _verdict(figure: Figure, found: Estimate, pairs: int, frames: int) -> Verdict:
    if found.infinite or found.seeds < pairs:
        return Verdict.UNKNOWN
    if pairs < FEWEST_PAIRS:
        return Verdict.TOO_FEW
    if found.low <= 0.0 <= found.high:
        return Verdict.NOT_SHOWN
    step = resolution(figure.unit, frames)
    if abs(found.value) < step and not math.isclose(abs(found.value), step):
        return Verdict.TOO_SMALL
    return Verdict.BETTER if (found.value > 0) == figure.more_is_better else Verdict.WORSE
