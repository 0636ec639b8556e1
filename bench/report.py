"""Figures on standard output, progress on standard error."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator, Mapping
from statistics import median, quantiles

from rich.console import Console
from rich.progress import track

__all__ = ["Figures", "machine", "rounds", "spread", "write"]

Figures = Mapping[str, object]
"""One line of output: JSON values by name."""


def write(figures: Figures) -> None:
    """One line of JSON, at once."""
    print(json.dumps(figures), flush=True)


def rounds(count: int, what: str) -> Iterator[int]:
    """0 to `count` - 1, with a progress bar where somebody watches."""
    console = Console(stderr=True)
    yield from track(range(count), what, console=console, disable=not console.is_terminal)


def machine() -> Figures:
    """Where the figures were taken."""
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
    }


def spread(values: list[float]) -> Figures:
    """Median and quartiles of at least two values."""
    lower, _, upper = quantiles(values, n=4)
    return {"median": round(median(values), 3), "quartiles": [round(lower, 3), round(upper, 3)]}
