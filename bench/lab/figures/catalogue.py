"""The figures of a flow, by name: how each is told, bounded and compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from bench.lab.figures.emodel import Rating, one_way, rate
from bench.lab.figures.lateness import Lateness, jitter, late, quantile, silence
from bench.lab.figures.playout import PLAYOUT, STATED, runs, share, unheard
from bench.lab.record import Flow, Wire
from tenuto.media import FRAME_DURATION

__all__ = [
    "FIGURES",
    "Figure",
    "Measured",
    "Unit",
    "bounds",
    "figure",
    "late_or_lost",
    "measure",
    "opinion",
    "rating",
    "resolution",
]

Unit = Literal["share", "time", "rate", "ratio", "score", "rating"]


@dataclass(frozen=True, slots=True)
class Measured:
    """A flow and what is computed from it once."""

    flow: Flow
    lateness: Lateness
    ascending: Lateness
    floor: float | None
    seconds: float
    """Of audio that was due."""
    payload: float
    """Bytes of audio that were due."""
    ratings: dict[float, Rating]
    """By playout delay."""


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    title: str
    unit: Unit
    of: Callable[[Measured], float]
    """Infinite for what never came, NaN for what there is not."""
    compared: bool = False
    typical: bool = False
    """Told by the median of the seeds and their worst: the mean would be that of one seed's mishap.
    """
    more_is_better: bool = False
    words: tuple[str, str] = ("better", "worse")


_BOUNDS: Final[dict[Unit, tuple[float, float]]] = {
    "share": (0.0, 1.0),
    "time": (0.0, math.inf),
    "rate": (0.0, math.inf),
    "ratio": (0.0, math.inf),
    "score": (1.0, 4.5),
    "rating": (-math.inf, 100.0),
}
_STEPS: Final[dict[Unit, float]] = {
    "time": 0.001,
    "rate": 1000.0,
    "ratio": 0.01,
    "score": 0.05,
    "rating": 1.0,
}


def bounds(unit: Unit) -> tuple[float, float]:
    """Beyond which no value of the unit lies."""
    return _BOUNDS[unit]


def resolution(unit: Unit, frames: int) -> float:
    """A difference below this is not called one; of a share, one frame in a flow of so many."""
    return 1.0 / frames if unit == "share" else _STEPS[unit]


def measure(flow: Flow, *, floor: float | None, frames: int, frame_size: int) -> Measured:
    """`frames` were due, each of `frame_size` bytes; `floor` is that of the flow's profile."""
    lateness = late(flow.delays, frames, floor)
    return Measured(
        flow=flow,
        lateness=lateness,
        ascending=np.sort(lateness),
        floor=floor,
        seconds=len(lateness) * FRAME_DURATION,
        payload=float(len(lateness) * frame_size),
        ratings={
            playout: rate(unheard(lateness, playout), one_way(floor, playout))
            for playout in PLAYOUT
        },
    )


def late_or_lost(playout: float) -> str:
    """The name of the figure."""
    return f"late_or_lost_{1000 * playout:.0f}"


def opinion(playout: float) -> str:
    return f"mos_{1000 * playout:.0f}"


def rating(playout: float) -> str:
    return f"r_{1000 * playout:.0f}"


def figure(name: str) -> Figure:
    return _BY_NAME[name]


def _late_or_lost(playout: float) -> Figure:
    return Figure(
        late_or_lost(playout),
        f"late or lost at {1000 * playout:.0f} ms",
        "share",
        lambda each: share(each.lateness, playout),
        compared=True,
    )


def _opinion(playout: float) -> Figure:
    return Figure(
        opinion(playout),
        f"MOS at {1000 * playout:.0f} ms",
        "score",
        lambda each: each.ratings[playout].mos,
        compared=playout == STATED,
        more_is_better=True,
    )


def _rating(playout: float) -> Figure:
    title = f"R at {1000 * playout:.0f} ms"
    return Figure(
        rating(playout), title, "rating", lambda each: each.ratings[playout].r, more_is_better=True
    )


def _quantile(name: str, fraction: float) -> Figure:
    return Figure(name, f"{name} lateness", "time", lambda each: quantile(each.ascending, fraction))


def _never(each: Measured) -> float:
    return float(np.mean(np.isinf(each.lateness)))


def _concealed(each: Measured) -> float:
    """In a minute of audio, so that runs of unlike lengths compare."""
    return 60.0 * share(each.lateness, STATED)


def _unheard(each: Measured) -> float:
    return max(runs(unheard(each.lateness, STATED)), default=0) * FRAME_DURATION


def _waited(value: float | None) -> float:
    return math.inf if value is None else value


def _rate(wire: Wire, each: Measured) -> float:
    return 8.0 * wire.size / each.seconds


FIGURES: Final = (
    *map(_late_or_lost, PLAYOUT),
    Figure("never", "never came", "share", _never),
    _quantile("p50", 0.50),
    _quantile("p95", 0.95),
    _quantile("p99", 0.99),
    Figure("jitter", "RFC 3550 jitter", "time", lambda each: jitter(each.lateness)),
    Figure("concealed", "concealed in a minute", "time", _concealed),
    Figure("unheard", "longest unheard", "time", _unheard, compared=True, typical=True),
    Figure(
        "silence",
        "longest gap between arrivals",
        "time",
        lambda each: silence(each.lateness),
        typical=True,
    ),
    Figure(
        "handshake",
        "handshake",
        "time",
        lambda each: _waited(each.flow.handshake),
        typical=True,
    ),
    Figure(
        "first_audio",
        "first audio",
        "time",
        lambda each: _waited(each.flow.first_audio),
        compared=True,
        typical=True,
    ),
    Figure(
        "down",
        "on the wire, down",
        "rate",
        lambda each: _rate(each.flow.down, each),
        compared=True,
        words=("less", "more"),
    ),
    Figure("up", "on the wire, up", "rate", lambda each: _rate(each.flow.up, each)),
    Figure(
        "overhead",
        "both ways to payload",
        "ratio",
        lambda each: (each.flow.down.size + each.flow.up.size) / each.payload,
    ),
    *map(_opinion, PLAYOUT),
    *map(_rating, PLAYOUT),
)

_BY_NAME: Final = {each.name: each for each in FIGURES}
