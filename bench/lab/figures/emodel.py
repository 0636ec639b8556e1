"""The E-model of ITU-T G.107 (06/2015), cut to what the lab varies: delay and unheard frames.

R = 93.2 - Id - Ie,eff and, from it, an estimated mean opinion score. It is a planning model of
narrow-band telephony. Here it orders conditions; it is no listening test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench.lab.figures.playout import runs
from tenuto.media import FRAME_DURATION

__all__ = [
    "ASSUMPTIONS",
    "Rating",
    "burst_ratio",
    "delay_impairment",
    "loss_impairment",
    "one_way",
    "opinion",
    "rate",
]

_DEFAULT_R: Final = 93.2
"""With every parameter at its default (G.107, clause 7.7): Ro - Is, and the advantage A = 0."""

_IE: Final = 0.0
_BPL: Final = 25.1
"""G.711 with the packet loss concealment of its Appendix I (G.113, Appendix I)."""

_NOTICED: Final = 0.100
"""mT: a one-way delay up to this costs nothing; sT, the sensitivity, is 1."""

_MOST_DELAY: Final = 0.500
_MOST_LOSS: Final = 0.20
_MOST_BURST: Final = 8.0
_MOST_BURST_OFTEN: Final = 2.0
_OFTEN: Final = 0.02
"""G.107, table of defaults and permitted ranges: bursts above 2 only where loss is below 2 %."""

ASSUMPTIONS: Final = (
    "ITU-T G.107 (06/2015), narrow-band: R = 93.2 − Id − Ie,eff; 93.2 is the rating with every"
    " parameter at its default, and the advantage factor A is 0.",
    "Id is Idd alone (sT = 1, mT = 100 ms): no echo at either end, Idte = Idle = 0.",
    "One-way delay = smallest measured delay of the profile + playout delay + one frame of 20 ms.",
    "Ie,eff = Ie + (95 − Ie) Ppl / (Ppl / BurstR + Bpl) with Ie = 0 and Bpl = 25.1: G.711 with the"
    " concealment of its Appendix I, ITU-T G.113 Appendix I. What the lab sends is 16 kHz PCM,"
    " which the narrow-band model does not know.",
    "Ppl is the late-or-lost share at that playout delay, frame by frame; BurstR is the mean length"
    " of its runs over that of random loss, 1 / (1 − share), and not below 1.",
    "Where nothing is heard at all, R is 0 by our own rule.",
    "Outside of the ranges that G.107 permits (delay above 500 ms, Ppl above 20 %, BurstR above 8,"
    " or above 2 where Ppl is not below 2 %) the same formula goes on, and the value is marked.",
)


@dataclass(frozen=True, slots=True)
class Rating:
    r: float
    mos: float
    outside: bool
    """Of the ranges for which the model was made."""


def rate(mask: NDArray[np.bool_], delay: float) -> Rating:
    """The rating where the frames of `mask` are not heard; `delay` is one way, mouth to ear."""
    loss = float(np.mean(mask))
    if loss >= 1.0:
        return Rating(0.0, 1.0, True)
    ratio = burst_ratio(runs(mask), len(mask))
    r = _DEFAULT_R - delay_impairment(delay) - loss_impairment(loss, ratio)
    bursts = _MOST_BURST if loss < _OFTEN else _MOST_BURST_OFTEN
    outside = delay > _MOST_DELAY or loss > _MOST_LOSS or ratio > bursts
    return Rating(r, opinion(r), outside)


def one_way(floor: float | None, playout: float) -> float:
    """Mouth to ear: the path, the wait for the turn, and the frame that had to be full first."""
    return (floor or 0.0) + playout + FRAME_DURATION


def burst_ratio(lengths: Sequence[int], frames: int) -> float:
    """BurstR of these runs among so many frames; 1 for none, and not below 1."""
    if not lengths:
        return 1.0
    lost = sum(lengths)
    return max(1.0, lost / len(lengths) * (1.0 - lost / frames))


def delay_impairment(delay: float) -> float:
    """Idd of G.107, clause 7.4."""
    if delay <= _NOTICED:
        return 0.0
    x = math.log2(delay / _NOTICED)
    return 25.0 * (math.pow(1 + x**6, 1 / 6) - 3 * math.pow(1 + (x / 3) ** 6, 1 / 6) + 2)


def loss_impairment(loss: float, ratio: float) -> float:
    """Ie,eff of G.107, clause 7.5; `loss` is a share."""
    percent = 100.0 * loss
    return _IE + (95.0 - _IE) * percent / (percent / ratio + _BPL)


def opinion(r: float) -> float:
    """The estimated mean opinion score of a rating (G.107, Annex B), from 1 to 4.5."""
    if r <= 0.0:
        return 1.0
    if r >= 100.0:
        return 4.5
    # The polynomial dips below the scale for R < 6.5.
    return max(1.0, 1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6)
