"""What the scenarios have in common: how big a run is, a line of figures, several flows at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import TypeVar

from bench.report import progress
from bench.switching.account import Account
from bench.switching.stage import Stage

__all__ = ["Setting", "all_of", "line", "milliseconds", "worst_lag"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setting:
    stage: Stage
    quick: bool
    aside: dict[str, asyncio.Task[object]] = field(default_factory=dict)
    """What runs beside the scenarios, by its name."""

    def of(self, full: int, quick: int) -> int:
        return quick if self.quick else full


async def all_of(what: str, flows: Iterable[Awaitable[T]]) -> list[T]:
    """Their results in order; those that have no seat yet wait for one."""
    waiting = list(flows)
    done = 0
    with progress(what) as tell:

        async def counted(flow: Awaitable[T]) -> T:
            nonlocal done
            result = await flow
            done += 1
            tell(done / len(waiting))
            return result

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(counted(flow)) for flow in waiting]
        return [task.result() for task in tasks]


def line(
    number: int,
    scenario: str,
    figures: Mapping[str, object],
    limits: Mapping[str, object],
    *,
    met: bool,
) -> dict[str, object]:
    """As it is printed; `number` is that of docs/benchmarks.md."""
    named = {"bench": "switch", "line": number, "scenario": scenario}
    return {**named, **figures, "limits": dict(limits), "met": met}


def milliseconds(values: Sequence[float | None]) -> dict[str, float | int]:
    """Median, ninth tenth and most; those that never came are counted apart."""
    there = sorted(value for value in values if value is not None)
    told: dict[str, float | int] = {}
    if there:
        told |= {"median": round(median(there) * 1000, 1), "most": round(there[-1] * 1000, 1)}
    if len(there) > 1:
        told["p90"] = round(quantiles(there, n=10, method="inclusive")[-1] * 1000, 1)
    return told | {"of": len(there), "never": len(values) - len(there)}


def worst_lag(accounts: Iterable[Account]) -> float:
    """How late a listener's own timers were at worst, in milliseconds: the machine's share."""
    return round(max((account.lag for account in accounts), default=0.0) * 1000, 1)
