"""What is late or lost, against how long playing is put off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from bench.lab.figures import (
    CURVE,
    PLAYOUT,
    Ground,
    ModeTable,
    ProfileTable,
    late_or_lost,
)
from bench.lab.report.draw import (
    NARROW,
    WIDE,
    Canvas,
    Line,
    Scale,
    curve,
    line,
    marker,
    picture,
    text,
)
from bench.lab.report.names import band, ends, gone
from bench.lab.report.text import amount, interval

__all__ = ["playout_chart"]

_HEIGHT: Final = {"wide": 430.0, "narrow": 380.0}
_TOP: Final = 28.0
_BELOW: Final = 44.0
_ZERO: Final = 26.0
"""Room between the smallest share and none."""


def playout_chart(table: ProfileTable, lines: Sequence[Line]) -> str:
    """The image, for wide and for narrow screens."""
    return "".join(_drawn(canvas, table, lines) for canvas in (WIDE, NARROW))


def _drawn(canvas: Canvas, table: ProfileTable, lines: Sequence[Line]) -> str:
    height = _HEIGHT[canvas.name]
    zero = height - _BELOW
    frames = max(len(mode.pooled) for mode in table.modes)
    decades = max(math.ceil(math.log10(frames)), 1)

    def x(playout: float) -> float:
        return canvas.left + canvas.inner * playout / CURVE[-1]

    def y(share: float) -> float:
        depth = 1.0 if share <= 0 else min(-math.log10(share), decades) / decades
        return _TOP + depth * (zero - _ZERO - _TOP)

    parts = _grid(canvas, x, y, decades, zero)
    came: list[tuple[Line, tuple[float, float]]] = []
    none: list[tuple[Line, float]] = []
    for place, (mode, drawn) in enumerate(zip(table.modes, lines, strict=True)):
        points = _points(mode, x, y)
        if points[-1][1] <= zero - _ZERO:
            came.append((drawn, points[-1]))
        else:
            none.append((drawn, points[-1][0]))
        parts.append(curve(points, drawn))
        dodge = (place - (len(lines) - 1) / 2) * (3.2 if canvas is WIDE else 1.4)
        parts.extend(_whiskers(mode, drawn, x, y, dodge))
    names, tips = [each for each, _ in came], [tip for _, tip in came]
    parts.extend(ends(canvas, names, tips, _TOP, zero - _ZERO))
    parts.extend(gone(canvas, none, zero - _ZERO / 2))
    title = "Late or lost, by playout delay"
    return picture(canvas, height, title, _told(table), parts)


def _grid(canvas: Canvas, x: Scale, y: Scale, decades: int, zero: float) -> list[str]:
    left, right = canvas.left, canvas.left + canvas.inner
    parts = [
        text(left, 14, "late or lost, % of all frames", style="axis"),
        band(canvas, zero - _ZERO, zero, "none", zero - 1),
    ]
    for decade in range(decades + 1):
        at = y(10.0**-decade)
        parts.append(line(left, at, right, at, "grid"))
        parts.append(text(left - 8, at + 4, f"{100 * 10.0**-decade:g}", "end"))
    told = {0.0, 0.3, 0.4, *PLAYOUT} if canvas is WIDE else {0.0, 0.3, 0.4, *PLAYOUT} - {0.06}
    for playout in sorted({0.0, 0.3, 0.4, *PLAYOUT}):
        style = "rule" if playout in PLAYOUT else "grid"
        parts.append(line(x(playout), _TOP, x(playout), zero, style))
        if playout in told:
            parts.append(text(x(playout), zero + 18, f"{1000 * playout:.0f}", "middle"))
    words = "playout delay above the path's own, ms"
    if canvas is WIDE:
        parts.append(text(right, zero + 36, words, "end", style="axis"))
    else:
        parts.append(text(left, zero + 36, words, style="axis"))
    return parts


def _points(mode: ModeTable, x: Scale, y: Scale) -> list[tuple[float, float]]:
    """To where nothing is late any more; there it leaves the chart."""
    points = []
    for playout, share in zip(CURVE, mode.curve.tolist(), strict=True):
        points.append((x(playout), y(share)))
        if share <= 0:
            points[-1] = (x(playout), y(0.0) + 1)
            break
    return points


def _whiskers(mode: ModeTable, drawn: Line, x: Scale, y: Scale, dodge: float) -> list[str]:
    """The interval of each share of the tables, beside the others'."""
    parts = []
    for playout in PLAYOUT:
        found = mode.estimates[late_or_lost(playout)]
        at = x(playout) + dodge
        if found.ground is Ground.SEEDS:
            bars = line(at, y(found.low), at, y(found.high), "whisker")
            parts.append(f'<g class="c{drawn.place % 8}">{bars}</g>')
        if found.value > 0:
            parts.append(marker(at, y(found.value), drawn, 3.4))
    return parts


def _told(table: ProfileTable) -> str:
    return "; ".join(_sentence(mode) for mode in table.modes)


def _sentence(mode: ModeTable) -> str:
    shares = []
    for playout in PLAYOUT:
        found = mode.estimates[late_or_lost(playout)]
        between = interval(found, "share")
        shares.append(
            f"{amount(found.value, 'share')} at {1000 * playout:.0f} ms"
            + (f" ({between})" if between else "")
        )
    return f"{mode.name}: {', '.join(shares)}"
