"""The least playout delay that somebody who knew all arrivals could have chosen.

In the manner of Moon, Kurose and Towsley, "Packet audio playout delay adjustment" (1998).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ["constant_delay", "segment_delay"]

_SEGMENT = 250
"""Frames of 5 s."""


def constant_delay(offsets: Mapping[int, float], frames: range, late: float) -> float:
    """The least constant delay at which no more than `late` of the frames are late.

    `offsets` are arrival minus place in media time; a frame without one was lost, and is late
    at any delay. The delay counts from offset 0.
    """
    came = np.sort([offsets[n] for n in frames if n in offsets])
    spare = max(0, int(late) - (len(frames) - len(came)))
    return float(came[max(0, len(came) - 1 - spare)])


def segment_delay(offsets: Mapping[int, float], frames: range, late: float) -> float:
    """The same, on average, if each 5 s may have a delay of their own.

    By a Lagrange multiplier: the price of a late frame, the same for all segments, at which
    no more than `late` of them are late.
    """
    segments = [
        np.sort([offsets[n] for n in frames[k : k + _SEGMENT] if n in offsets])
        for k in range(0, len(frames), _SEGMENT)
    ]
    segments = [segment for segment in segments if len(segment)]
    lost = len(frames) - sum(map(len, segments))
    cheap, dear = 1e-6, 1e6
    for _ in range(60):
        price = (cheap * dear) ** 0.5
        if lost + sum(_best(segment, price)[1] for segment in segments) > late:
            cheap = price
        else:
            dear = price
    chosen = [_best(segment, dear) for segment in segments]
    weighed = sum(
        delay * len(segment) for (delay, _), segment in zip(chosen, segments, strict=True)
    )
    # Prices reach only some of the ways to spend the late frames: few segments may do worse by
    # them than by one delay for all, which is a choice too.
    return min(float(weighed / sum(map(len, segments))), constant_delay(offsets, frames, late))


def _best(segment: NDArray[np.float64], price: float) -> tuple[float, int]:
    """The delay of least cost in one segment, and how many of its frames are late by it."""
    late = np.arange(len(segment) - 1, -1, -1)
    best = int(np.argmin(segment * len(segment) + price * late))
    return float(segment[best]), int(late[best])
