"""One seed, frame by frame: a strip for each mode, with what the link dropped beneath."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from bench.lab.figures import STATED, Lateness, Measured, ProfileTable
from bench.lab.record import Drop
from bench.lab.report.draw import (
    NARROW,
    WIDE,
    Canvas,
    Line,
    Scale,
    lateness_scale,
    line,
    picture,
    text,
)
from bench.lab.report.text import bare, safe, short
from tenuto.media import FRAME_DURATION

__all__ = ["timeline"]

_STRIP: Final = 62.0
_TICKS: Final = 16.0
"""Below a strip: the packets dropped."""
_HEAD: Final = 28.0
_SEEN: Final = 0.002
"""Seconds: what is earlier has no stem."""
_MARGIN: Final = 14.0


def timeline(table: ProfileTable, lines: Sequence[Line]) -> str:
    """The image, for wide and for narrow screens; empty where the seed has no flow."""
    flows = [_of_seed(mode.flows, table.typical) for mode in table.modes]
    shown = [(drawn, flow) for drawn, flow in zip(lines, flows, strict=True) if flow is not None]
    return "".join(_drawn(canvas, table, shown) for canvas in (WIDE, NARROW))


def _of_seed(flows: Iterable[Measured], seed: int | None) -> Measured | None:
    return next((each for each in flows if each.flow.seed == seed), None)


def _drawn(canvas: Canvas, table: ProfileTable, shown: Sequence[tuple[Line, Measured]]) -> str:
    row = _HEAD + _STRIP + _TICKS + 8
    right = canvas.width - (_MARGIN if canvas is NARROW else 8)
    seconds = max(each.seconds for _, each in shown)
    most = max(_most(each.lateness) for _, each in shown)

    def x(at: float) -> float:
        return canvas.left + (right - canvas.left) * at / seconds

    parts: list[str] = []
    for place, (drawn, measured) in enumerate(shown):
        top = place * row + _HEAD
        y = lateness_scale(max(1.05 * most, 0.25), top + _STRIP, top + 8)
        parts.extend(_axes(canvas, right, top, y, max(1.05 * most, 0.25)))
        parts.append(_title(canvas, drawn, measured, top))
        parts.extend(_stems(measured.lateness, x, y, top, canvas))
        parts.extend(_drops(measured.flow.drops, x, top + _STRIP, seconds))
    bottom = len(shown) * row
    parts.extend(_seconds(canvas, x, seconds, bottom))
    told = "; ".join(f"{drawn.name}: {_counts(each)}" for drawn, each in shown)
    return picture(canvas, bottom + 40, f"Frame by frame, seed {table.typical}", told, parts)


def _axes(canvas: Canvas, right: float, top: float, y: Scale, most: float) -> list[str]:
    parts = []
    for tick in (0.0, 0.050, STATED, 0.500, 2.0):
        if tick < most:
            style = "base" if tick == 0 else "rule" if tick == STATED else "grid"
            parts.append(line(canvas.left, y(tick), right, y(tick), style))
            parts.append(text(canvas.left - 6, y(tick) + 4, f"{1000 * tick:.0f}", "end"))
    return parts


def _title(canvas: Canvas, drawn: Line, measured: Measured, top: float) -> str:
    letters = 24 if canvas is NARROW else 60
    words = f"{drawn.place + 1} {short(drawn.name, letters)}"
    told = _counts(measured) if canvas is WIDE else f"{_share(measured)} % unheard"
    return (
        f'<text class="axis" x="{canvas.left:g}" y="{top - 8:g}">'
        f'<tspan class="strong">{safe(words)}</tspan>: {told}</text>'
    )


def _counts(measured: Measured) -> str:
    never = int((measured.lateness == math.inf).sum())
    return f"{_unheard(measured)}, {never:,} never came"


def _unheard(measured: Measured) -> str:
    return f"{_share(measured)} % late or lost at {1000 * STATED:.0f} ms"


def _share(measured: Measured) -> str:
    count = int((measured.lateness > STATED).sum())
    return bare(count / len(measured.lateness), "share")


def _most(lateness: Lateness) -> float:
    finite = lateness[lateness < math.inf]
    return float(finite.max()) if len(finite) else 0.0


def _stems(lateness: Lateness, x: Scale, y: Scale, top: float, canvas: Canvas) -> list[str]:
    """A frame in time has none; one that never came has the whole height."""
    step = 0.5 if canvas is NARROW else 0.7
    latest: dict[int, float] = {}
    for number, value in enumerate(lateness.tolist()):
        if value > _SEEN:
            column = round(x(number * FRAME_DURATION) / step)
            latest[column] = max(latest.get(column, 0.0), value)
    soon: list[str] = []
    late: list[str] = []
    for column, value in sorted(latest.items()):
        height = y(0.0) - (top if math.isinf(value) else y(value))
        (late if value > STATED else soon).append(f"M{column * step:.1f} {y(0.0):g}v-{height:.1f}")
    return [
        f'<path class="{style}" d="{"".join(stems)}"/>'
        for style, stems in (("soon", soon), ("late", late))
        if stems
    ]


def _drops(drops: Sequence[Drop], x: Scale, bottom: float, seconds: float) -> list[str]:
    ticks = sorted(
        {
            f"M{x(drop.at):.0f} {bottom + (3 if drop.way == 'down' else 10):g}v5"
            for drop in drops
            if 0 <= drop.at <= seconds
        }
    )
    return [f'<path class="drop" d="{"".join(ticks)}"/>'] if ticks else []


def _seconds(canvas: Canvas, x: Scale, seconds: float, bottom: float) -> list[str]:
    step = next((each for each in (1, 2, 5, 10, 20, 60) if seconds / each <= 6), 300)
    parts = []
    at = 0
    while at <= seconds:
        parts.append(text(x(at), bottom + 12, f"{at}", "middle"))
        at += step
    parts.append(text(canvas.left, bottom + 29, "when the frame was due, s", style="axis"))
    return parts
