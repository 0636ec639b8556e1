"""Figures on standard output, progress on standard error."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median, quantiles

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, track

__all__ = ["Figures", "machine", "progress", "rounds", "spread", "write"]

Figures = Mapping[str, object]
"""One line of output: JSON values by name."""


def write(figures: Figures) -> None:
    """One line of JSON, at once."""
    print(json.dumps(figures), flush=True)


def rounds(count: int, what: str) -> Iterator[int]:
    """0 to `count` - 1, with a progress bar where somebody watches."""
    console = Console(stderr=True)
    yield from track(range(count), what, console=console, disable=not console.is_terminal)


@contextmanager
def progress(what: str) -> Iterator[Callable[[float], None]]:
    """To be told what part of it is done, which a bar shows where somebody watches."""
    console = Console(stderr=True)
    bar = Progress(console=console, disable=not console.is_terminal)
    with bar:
        task = bar.add_task(escape(what), total=1.0)
        yield lambda part: bar.update(task, completed=part)


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
