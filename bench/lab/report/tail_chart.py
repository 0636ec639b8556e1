"""How late the latest frames are: lateness against the share of frames that are no later."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from bench.lab.figures import STATED, Lateness, ModeTable, ProfileTable, quantile
from bench.lab.report.draw import (
    NARROW,
    WIDE,
    Canvas,
    Line,
    Scale,
    curve,
    lateness_scale,
    line,
    marker,
    picture,
    text,
)
from bench.lab.report.names import band, ends, gone
from bench.lab.report.text import amount

__all__ = ["tail_chart"]

_HEIGHT: Final = {"wide": 430.0, "narrow": 380.0}
_TOP: Final = 26.0
_BAND: Final = 26.0
"""For the frames that never came, above all lateness."""
_BELOW: Final = 44.0
_LEAST: Final = 0.200
"""Seconds that the chart reaches to, so that the stated playout delay is in it."""
_CLEAR: Final = 12.0
"""Between the lowest name and the figures below the axis."""
_STEPS: Final = 160
_SHARES: Final = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999)
_LATENESS: Final = (0.0, 0.010, 0.020, 0.050, 0.100, 0.200, 0.500, 1.0, 2.0, 5.0, 10.0, 30.0)


def tail_chart(table: ProfileTable, lines: Sequence[Line]) -> str:
    """The image, for wide and for narrow screens."""
    return "".join(_drawn(canvas, table, lines) for canvas in (WIDE, NARROW))


def _drawn(canvas: Canvas, table: ProfileTable, lines: Sequence[Line]) -> str:
    height = _HEIGHT[canvas.name]
    bottom, top = height - _BELOW, _TOP + _BAND
    frames = max(len(mode.pooled) for mode in table.modes)
    most = max((_most(mode.pooled) for mode in table.modes), default=0.0)
    y = lateness_scale(max(1.08 * most, _LEAST), bottom, top)
    decades = max(math.log10(frames), 1.0)

    def x(decade: float) -> float:
        return canvas.left + canvas.inner * decade / decades

    parts = [
        *_grid(canvas, x, decades, y, max(1.08 * most, _LEAST), bottom),
        text(canvas.left, 14, "lateness, ms", style="axis"),
    ]
    came: list[tuple[Line, tuple[float, float]]] = []
    lost: list[tuple[Line, float]] = []
    for mode, drawn in zip(table.modes, lines, strict=True):
        points, lost_at = _points(mode.pooled, x, y)
        if lost_at is None:
            came.append((drawn, points[-1]))
        else:
            at = x(min(lost_at, decades))
            points += [(at, points[-1][1]), (at, _TOP + _BAND)]
            lost.append((drawn, at))
        parts.append(curve(points, drawn))
        parts.extend(_marks(mode.pooled, x, y, drawn, decades))
    names, tips = [each for each, _ in came], [tip for _, tip in came]
    parts.extend(ends(canvas, names, tips, top, bottom - _CLEAR))
    parts.extend(gone(canvas, lost, _TOP + _BAND / 2))
    right = canvas.left + canvas.inner
    parts.append(text(right - 6, y(STATED) + 15, f"{1000 * STATED:.0f} ms", "end", "halo"))
    return picture(canvas, height, "Lateness of the latest frames", _told(table), parts)


def _grid(
    canvas: Canvas, x: Scale, decades: float, y: Scale, most: float, bottom: float
) -> list[str]:
    left, right = canvas.left, canvas.left + canvas.inner
    parts = [
        band(canvas, _TOP, _TOP + _BAND, "never", _TOP + 11),
    ]
    for tick in _LATENESS:
        if tick <= most:
            parts.append(line(left, y(tick), right, y(tick), "base" if tick == 0 else "grid"))
            parts.append(text(left - 8, y(tick) + 4, f"{1000 * tick:.0f}", "end"))
    parts.append(line(left, y(STATED), right, y(STATED), "rule"))
    before = -math.inf
    for share in (0.0, *_SHARES):
        at = -math.log10(1.0 - share)
        # Where there are more than a hair's breadth of frames beyond, and room for the words.
        if at <= decades + 1e-9 and x(at) - before > 34:
            before = x(at)
            parts.append(line(before, _TOP, before, bottom, "grid"))
            parts.append(text(before, bottom + 18, f"{100 * share:.6g}", "middle"))
    words = "% of the frames are no later than this"
    if canvas.name == "narrow":
        parts.append(text(left, bottom + 36, words, style="axis"))
    else:
        parts.append(text(right, bottom + 36, words, "end", style="axis"))
    return parts


def _most(ascending: Lateness) -> float:
    finite = ascending[ascending < math.inf]
    return float(finite[-1]) if len(finite) else 0.0


def _points(
    ascending: Lateness, x: Scale, y: Scale
) -> tuple[list[tuple[float, float]], float | None]:
    """The curve, evenly along the axis, and at what decade frames begin that never came."""
    frames = len(ascending)
    came = int((ascending < math.inf).sum())
    end = math.log10(frames)
    lost_at = None if came == frames else -math.log10(1.0 - came / frames)
    points = []
    for step in range(_STEPS + 1):
        decade = end * step / _STEPS
        value = quantile(ascending, 1.0 - 10.0**-decade)
        if math.isfinite(value):
            points.append((x(decade), y(value)))
    return points or [(x(0.0), y(0.0))], lost_at


def _marks(ascending: Lateness, x: Scale, y: Scale, drawn: Line, decades: float) -> list[str]:
    marks = []
    for share in _SHARES:
        at = -math.log10(1.0 - share)
        value = quantile(ascending, share)
        if math.isfinite(value) and at < decades - 0.1:
            marks.append(marker(x(at), y(value), drawn, 3.4))
    return marks


def _told(table: ProfileTable) -> str:
    return "; ".join(_sentence(mode) for mode in table.modes)


def _sentence(mode: ModeTable) -> str:
    at = ", ".join(
        f"{name} {amount(quantile(mode.pooled, share), 'time')}"
        for name, share in (("half", 0.5), ("95 %", 0.95), ("99 %", 0.99))
    )
    return f"{mode.name}: no later than: {at}"
