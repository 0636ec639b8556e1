"""Attempts begun one after the other; the first to succeed wins (RFC 8305 section 5)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from tenuto.client.errors import FailureKind, LegError

__all__ = ["ATTEMPT_DELAY", "first_to_connect"]

ATTEMPT_DELAY = 0.250
"""Seconds between the starts of two attempts (RFC 8305's recommendation)."""

T = TypeVar("T")


async def first_to_connect(
    attempts: Sequence[Callable[[], Awaitable[T]]],
    *,
    discard: Callable[[T], None],
    delay: float = ATTEMPT_DELAY,
) -> T:
    """The first success; the next attempt starts after `delay` or at once after a failure.

    Others are cancelled, and what they had connected in the same instant goes to `discard`.
    With no success it raises one `LegError` whose reason names them all.
    """
    started: list[asyncio.Task[T]] = []
    try:
        winner = await _first(attempts, started, delay)
    except BaseException:
        await _abandon(started, discard)
        raise
    try:
        await _abandon([task for task in started if task is not winner], discard)
    except BaseException:
        await _abandon([winner], discard)  # It has nobody to go to any more.
        raise
    return winner.result()


async def _first(
    attempts: Sequence[Callable[[], Awaitable[T]]], started: list[asyncio.Task[T]], delay: float
) -> asyncio.Task[T]:
    """The winner; those that `started` are the caller's to end."""
    waiting = list(attempts)
    running: set[asyncio.Task[T]] = set()
    while waiting or running:
        if waiting:
            started.append(asyncio.ensure_future(_await(waiting.pop(0))))
            running.add(started[-1])
        done, running = await asyncio.wait(
            running,
            timeout=delay if waiting else None,
            return_when=asyncio.FIRST_COMPLETED,
        )
        winner = next((task for task in done if _failure(task) is None), None)
        if winner is not None:
            return winner
    raise _together([failure for task in started if (failure := _failure(task))])


async def _await(attempt: Callable[[], Awaitable[T]]) -> T:
    return await attempt()


def _failure(task: asyncio.Task[T]) -> LegError | None:
    error = task.exception()
    if error is None or isinstance(error, LegError):
        return error
    raise error


def _together(failures: list[LegError]) -> LegError:
    """One for all, in the order of the attempts; a wrong certificate says more than the rest."""
    kinds = [failure.kind for failure in failures]
    kind = FailureKind.UNTRUSTED if FailureKind.UNTRUSTED in kinds else kinds[-1]
    return LegError(kind, "; ".join(failure.reason for failure in failures))


async def _abandon(tasks: list[asyncio.Task[T]], discard: Callable[[T], None]) -> None:
    """To the end, even where whoever waits for it is cancelled meanwhile; that is told then."""
    ending = asyncio.ensure_future(_end(tasks, discard))
    cancelled: asyncio.CancelledError | None = None
    while not ending.done():
        try:
            await asyncio.wait([ending])
        except asyncio.CancelledError as error:
            cancelled = error
    ending.result()
    if cancelled is not None:
        raise cancelled


async def _end(tasks: list[asyncio.Task[T]], discard: Callable[[T], None]) -> None:
    for task in tasks:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if not isinstance(outcome, BaseException):
            discard(outcome)
