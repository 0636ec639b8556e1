"""The parts of a chart: scales, ticks, line styles, labels that keep apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from bench.lab.report.text import safe

__all__ = [
    "NARROW",
    "WIDE",
    "Canvas",
    "Line",
    "apart",
    "curve",
    "lateness_scale",
    "line",
    "marker",
    "picture",
    "text",
]

Scale = Callable[[float], float]

_DASHES: Final = ("", "9 4", "2.5 3", "", "12 3 2.5 3", "5 3", "2 2 7 2", "1.5 4")
_MARKS: Final = "osd^vxp+"
_KNEE: Final = 0.010
"""Seconds: lateness below it is drawn about evenly, above it by its logarithm."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """Where a chart is drawn: wide for a screen and paper, narrow for a phone."""

    name: str
    width: float
    left: float
    right: float
    """Room for the names at the ends of the curves."""
    letters: int
    """Of a name."""

    @property
    def inner(self) -> float:
        return self.width - self.left - self.right


WIDE: Final = Canvas("wide", 1000, 56, 196, 22)
NARROW: Final = Canvas("narrow", 358, 40, 22, 0)


@dataclass(frozen=True, slots=True)
class Line:
    """How a mode is drawn, by its place among the modes: never by its colour alone."""

    place: int
    name: str
    reference: bool

    @property
    def style(self) -> str:
        weight = "" if self.reference else " product"
        return f"curve{weight} c{self.place % 8}"

    @property
    def dash(self) -> str:
        dashes = _DASHES[self.place % 8]
        return f' stroke-dasharray="{dashes}"' if dashes else ""

    @property
    def mark(self) -> str:
        return _MARKS[self.place % 8]


def picture(canvas: Canvas, height: float, title: str, told: str, parts: Iterable[str]) -> str:
    """An image with its name and its description for who does not see it."""
    return (
        f'<svg class="{canvas.name}" viewBox="0 0 {canvas.width:g} {height:g}" role="img">'
        f"<title>{safe(title)}</title><desc>{safe(told)}</desc>{''.join(parts)}</svg>"
    )


def text(x: float, y: float, words: str, anchor: str = "start", style: str = "") -> str:
    named = f' class="{style}"' if style else ""
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{_n(x)}" y="{_n(y)}"{where}{named}>{safe(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<path class="{style}" d="M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}"/>'


def curve(points: Sequence[tuple[float, float]], drawn: Line) -> str:
    path = "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
    return f'<path class="{drawn.style}"{drawn.dash} d="M{path}"/>'


def marker(x: float, y: float, drawn: Line, size: float = 4.0) -> str:
    """A shape of its own for each place; filled for the product."""
    filled = "" if drawn.reference else " full"
    style = f'class="mark{filled} c{drawn.place % 8}"'
    r, s = size, size * 0.88
    shapes = {
        "o": f"M{_n(x - r)} {_n(y)}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z",
        "s": f"M{_n(x - s)} {_n(y - s)}h{2 * s}v{2 * s}h{-2 * s}z",
        "d": f"M{_n(x)} {_n(y - 1.3 * r)}l{1.3 * r} {1.3 * r}l{-1.3 * r} {1.3 * r}"
        f"l{-1.3 * r} {-1.3 * r}z",
        "^": f"M{_n(x)} {_n(y - 1.2 * r)}l{1.15 * r} {2 * r}h{-2.3 * r}z",
        "v": f"M{_n(x)} {_n(y + 1.2 * r)}l{1.15 * r} {-2 * r}h{-2.3 * r}z",
        "x": f"M{_n(x - s)} {_n(y - s)}l{2 * s} {2 * s}m0 {-2 * s}l{-2 * s} {2 * s}",
        "p": f"M{_n(x)} {_n(y - 1.2 * r)}l{1.15 * r} {0.85 * r}l{-0.44 * r} {1.35 * r}"
        f"h{-1.42 * r}l{-0.44 * r} {-1.35 * r}z",
        "+": f"M{_n(x - 1.2 * r)} {_n(y)}h{2.4 * r}M{_n(x)} {_n(y - 1.2 * r)}v{2.4 * r}",
    }
    return f'<path {style} d="{shapes[drawn.mark]}"/>'


def apart(wanted: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Places as near as may be to the wanted ones, `least` from each other, in the same order."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    placed = [0.0] * len(wanted)
    before = low - least
    for index in order:
        before = placed[index] = max(wanted[index], before + least)
    after = high + least
    for index in reversed(order):
        after = placed[index] = min(placed[index], after - least)
    return placed


def lateness_scale(most: float, bottom: float, top: float) -> Scale:
    """Even near 0, logarithmic far from it; `most` seconds are at `top`."""
    whole = math.log1p(most / _KNEE)

    def at(value: float) -> float:
        return bottom + (top - bottom) * math.log1p(max(value, 0.0) / _KNEE) / whole

    return at


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
