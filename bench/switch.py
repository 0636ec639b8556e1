"""Does a listener notice: UDP blocked or dying, addresses that change, outages, and silences.

The product's own server and client, in processes and networks of their own, with paths of netem
between them. Every line has its limit; the numbers of the lines are those of docs/benchmarks.md.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.report import Figures, machine
from netem.errors import ImpairmentError
from netem.kernel.power import ensure_power
from tenuto.errors import OperatorError

if TYPE_CHECKING:
    from bench.switching.scenario import Setting

__all__ = ["SCENARIOS", "run"]

_SEATS: Final = 10
_QUICK_SEATS: Final = 6


SCENARIOS: Final = {
    "blocked": ("bench.switching.blocked", "first_words"),
    "unblocked": ("bench.switching.blocked", "way_back"),
    "deaths": ("bench.switching.mid_stream", "deaths"),
    "rebindings": ("bench.switching.roaming", "rebindings"),
    "outages": ("bench.switching.outages", "outages"),
    "silences": ("bench.switching.quiet", "quiet_ones"),
    "moves": ("bench.switching.moving", "moves"),
    "pause": ("bench.switching.quiet", "long_pause"),
}
"""Modules and what in them yields the lines; they load numpy. A pause runs beside the others."""


def run(quick: bool, names: Sequence[str] = ()) -> Iterator[Figures]:
    """The lines of each scenario, or those of the names, then the summary.

    Raises `OperatorError`.
    """
    for name in names:
        if name not in SCENARIOS:
            raise OperatorError(
                f"{name!r} is no scenario of this bench", remedy=f"there is {', '.join(SCENARIOS)}"
            )
    try:
        # Before numpy is loaded: who has threads enters no user namespace.
        ensure_power(own_network=True)
    except ImpairmentError as error:
        raise OperatorError(
            f"the networks of this bench cannot be made here: {str(error).partition('. ')[0]}",
            remedy="be root or allow user namespaces; `python -m netem probe` says what there is",
        ) from None
    lines: list[Figures] = []
    with tempfile.TemporaryDirectory() as media:
        for each in _lines(Path(media), quick, names or tuple(SCENARIOS)):
            lines.append(each)
            yield each
    yield {
        "bench": "switch",
        "summary": True,
        "quick": quick,
        "lines": len(lines),
        "met_by_line": _met_by_line(lines),
        "met": all(each["met"] for each in lines),
        **machine(),
    }


def _met_by_line(lines: list[Figures]) -> dict[str, str]:
    """By the number of the acceptance: how many of its lines are met."""
    numbers = sorted({str(each["line"]) for each in lines})
    told = {}
    for number in numbers:
        those = [each for each in lines if str(each["line"]) == number]
        told[number] = f"{sum(bool(each['met']) for each in those)} of {len(those)}"
    return told


def _lines(media: Path, quick: bool, names: Sequence[str]) -> Iterator[Figures]:
    from bench.switching.scenario import Setting
    from bench.switching.stage import Stage

    seats = _QUICK_SEATS if quick else _SEATS
    with asyncio.Runner() as runner, closing(Stage(media, seats)) as stage:
        runner.run(stage.ready())
        setting = Setting(stage, quick)
        if "pause" in names:
            from bench.switching.quiet import begin_pause

            runner.run(begin_pause(setting))
        for name in SCENARIOS:
            if name in names:
                given = _scenario(name)(setting)
                while (figures := runner.run(_next(given))) is not None:
                    yield figures


def _scenario(name: str) -> Callable[[Setting], AsyncIterator[dict[str, object]]]:
    module, function = SCENARIOS[name]
    found: Callable[[Setting], AsyncIterator[dict[str, object]]]
    found = getattr(import_module(module), function)
    return found


async def _next(lines: AsyncIterator[dict[str, object]]) -> dict[str, object] | None:
    return await anext(lines, None)
