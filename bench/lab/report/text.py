"""Text from anywhere made safe for a page, and figures made readable."""

from __future__ import annotations

import math
import re
from html import escape

from bench.lab.figures import Estimate, Ground, Unit

__all__ = [
    "DASH",
    "SPACE",
    "amount",
    "bare",
    "clean",
    "interval",
    "safe",
    "short",
    "signed",
    "unit_of",
]

DASH = "–"
NEVER = "never"
SPACE = "\u00a0"
"""Keeps a number and its unit on one line."""

_UNFIT = re.compile(
    # Control characters, half surrogates, and what turns the direction of the text.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)


def clean(text: str) -> str:
    """Without what a page or a terminal may not hold."""
    return _UNFIT.sub("\ufffd", text)


def safe(text: str) -> str:
    """For any place of a page, attributes too."""
    return escape(clean(text), quote=True)


def short(text: str, width: int) -> str:
    """Cut in the middle: names differ at both ends."""
    text = clean(text).replace("\n", " ").replace("\t", " ")
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def bare(value: float, unit: Unit) -> str:
    """In the unit of its table, without its name."""
    if math.isnan(value):
        return DASH
    if math.isinf(value):
        return NEVER
    match unit:
        case "share":
            return _digits(100 * value, small=2, most=99.95)
        case "time":
            return _digits(1000 * value, small=1, most=9.95)
        case "rate":
            return f"{value / 1000:.0f}"
        case "ratio" | "score":
            return f"{value:.2f}"
        case "rating":
            return f"{value:.0f}".replace("-", "−")


def _digits(value: float, small: int, most: float) -> str:
    """Digits that mean something, alike in a column; a zero only for nothing at all."""
    size = abs(value)
    if size == 0:
        return "0"
    least = 10.0**-small
    if size < least / 2:
        return f"<{least:.{small}f}"
    if size >= 1000:
        return f"{round(value, -1):.0f}"
    places = small if size < 1 else 1 if size < most else 0
    return f"{value:.{places}f}"


_NAMES: dict[Unit, str] = {
    "share": "%",
    "time": "ms",
    "rate": "kbit/s",
    "ratio": "×",
    "score": "",
    "rating": "",
}


def unit_of(unit: Unit) -> str:
    return _NAMES[unit]


def amount(value: float, unit: Unit) -> str:
    """With the name of its unit."""
    told = bare(value, unit)
    return told if told in {NEVER, DASH} or not _NAMES[unit] else f"{told}{SPACE}{_NAMES[unit]}"


def signed(value: float, unit: Unit) -> str:
    """A difference: with a sign, and a true minus."""
    told = bare(abs(value), unit)
    if told in {NEVER, DASH} or value == 0:
        return told
    if told.startswith("<"):
        return f"±{told}"
    return f"{'+' if value > 0 else '−'}{told}"


def interval(found: Estimate, unit: Unit, *, difference: bool = False) -> str:
    """The bounds; an empty text where there are none, or none that the digits show."""
    told = signed if difference else bare
    low, high = told(found.low, unit), told(found.high, unit)
    if found.ground is Ground.NOTHING or low == high:
        return ""
    return f"{low} to {high}" if difference else f"{low}–{high}"
