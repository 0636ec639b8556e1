"""What a listener hears who plays each frame a fixed time after it could first have come."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench.lab.figures.lateness import Lateness
from tenuto.media import FRAME_DURATION

__all__ = ["CURVE", "NEAR", "PLAYOUT", "STATED", "curve", "on_repair", "runs", "share", "unheard"]

PLAYOUT: Final = (0.040, 0.060, 0.100, 0.150, 0.200)
"""The playout delays of the tables."""

STATED: Final = 0.150
"""The one at which gaps and concealment are told, and the headline."""

CURVE: Final = tuple(step / 200 for step in range(81))
"""Those of the curve, 0 to 400 ms."""

NEAR: Final = 0.010
"""A playout delay so near to the moment of repair is decided by what should not matter."""


def unheard(lateness: Lateness, playout: float) -> NDArray[np.bool_]:
    """Which frames came after their turn, or never: late or lost."""
    return lateness > playout


def share(lateness: Lateness, playout: float) -> float:
    """The late-or-lost share of all frames that were due."""
    return float(np.mean(unheard(lateness, playout)))


def curve(ascending: Lateness, playouts: Sequence[float]) -> NDArray[np.float64]:
    """`share` at each of the playout delays."""
    heard = np.searchsorted(ascending, np.asarray(playouts), side="right")
    return 1.0 - heard / len(ascending)


def runs(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    """The lengths of the runs of unheard frames, in their order."""
    return tuple(len(list(run)) for lost, run in groupby(mask.tolist()) if lost)


def on_repair(playout: float, floor: float) -> bool:
    """Whether `playout` lies where a frame that was lost once comes: a round trip and a frame late.

    RFC 9002, section 6.1.2: a loss is seen 9/8 round trips after the sending, or by the frames
    after it. The same share then falls on one side or the other by a hair.
    """
    return abs(playout - (2 * floor + FRAME_DURATION)) <= NEAR
