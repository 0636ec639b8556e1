"""Who is who in a chart: names at the ends of the curves, and the legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.lab.figures import ModeTable
from bench.lab.report.draw import Canvas, Line, apart, line, marker, text
from bench.lab.report.text import safe, short

__all__ = ["band", "ends", "gone", "legend", "lines_of"]

_APART: Final = 16.0


def lines_of(modes: Sequence[ModeTable], places: dict[str, int]) -> list[Line]:
    """A mode is drawn alike in every chart of the page."""
    return [Line(places[mode.name], mode.name, mode.note.reference) for mode in modes]


def ends(
    canvas: Canvas,
    lines: Sequence[Line],
    tips: Sequence[tuple[float, float]],
    low: float,
    high: float,
) -> list[str]:
    """The name of each curve beside its end; its number where there is no room for names."""
    places = apart([y for _, y in tips], _APART, low + 4, high + 8)
    right = canvas.left + canvas.inner
    parts = []
    for drawn, (x, y), place in zip(lines, tips, places, strict=True):
        style = f"name c{drawn.place % 8}"
        if abs(place - y) > 3 or x < right - 12:
            parts.append(
                f'<g class="c{drawn.place % 8}">{line(x + 6, y, right + 4, place, "lead")}</g>'
            )
        number = f"{drawn.place + 1}"
        name = f"{number} {short(drawn.name, canvas.letters)}" if canvas.letters else number
        parts.append(text(right + 8, place + 4, name, style=style))
    return parts


def gone(canvas: Canvas, left: Sequence[tuple[Line, float]], middle: float) -> list[str]:
    """Mark and number of each curve that leaves the chart, in the band where it does."""
    places = apart([x for _, x in left], 26, canvas.left + 6, canvas.left + canvas.inner - 18)
    return [
        marker(place, middle, drawn)
        + text(place + 7, middle + 5, f"{drawn.place + 1}", style=f"name c{drawn.place % 8}")
        for (drawn, _), place in zip(left, places, strict=True)
    ]


def band(canvas: Canvas, top: float, bottom: float, name: str, base: float) -> str:
    """The ground of such a band, and what it stands for."""
    left, right = canvas.left, canvas.left + canvas.inner
    return f'<path class="band" d="M{left:g} {top:g}H{right:g}V{bottom:g}H{left:g}z"/>' + text(
        left - 8, base, name, "end"
    )


def legend(lines: Sequence[Line]) -> str:
    """Every line with its number and its whole name."""
    items = []
    for drawn in lines:
        sample = (
            f'<svg viewBox="0 0 58 16" aria-hidden="true"><path class="{drawn.style}"'
            f'{drawn.dash} d="M1 8H57"/>{marker(29, 8, drawn)}</svg>'
        )
        items.append(
            f'<li class="c{drawn.place % 8}"><b>{drawn.place + 1}</b>{sample}'
            f"<span>{safe(drawn.name)}</span></li>"
        )
    return f'<ul class="legend">{"".join(items)}</ul>'
