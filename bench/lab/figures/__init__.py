"""What the lab's records say, in figures: values in, values out.

Every figure is computed per flow; the values of the seeds are the samples from which the intervals
come. docs/lab-figures.md defines each.
"""

from bench.lab.figures.catalogue import (
    FIGURES,
    Figure,
    Measured,
    Unit,
    figure,
    late_or_lost,
    opinion,
    rating,
)
from bench.lab.figures.comparison import FEWEST_PAIRS, Comparison, Verdict
from bench.lab.figures.emodel import ASSUMPTIONS
from bench.lab.figures.intervals import CONFIDENCE, Estimate, Ground
from bench.lab.figures.lateness import Lateness, quantile
from bench.lab.figures.playout import CURVE, PLAYOUT, STATED
from bench.lab.figures.table import BASELINE, ModeTable, ProfileTable, tables

__all__ = [
    "ASSUMPTIONS",
    "BASELINE",
    "CONFIDENCE",
    "CURVE",
    "FEWEST_PAIRS",
    "FIGURES",
    "PLAYOUT",
    "STATED",
    "Comparison",
    "Estimate",
    "Figure",
    "Ground",
    "Lateness",
    "Measured",
    "ModeTable",
    "ProfileTable",
    "Unit",
    "Verdict",
    "figure",
    "late_or_lost",
    "opinion",
    "quantile",
    "rating",
    "tables",
]
