"""The highest rate at which nothing is lost but what the profile wants, and what stops there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import sqrt

from bench.link_turns import Turn

__all__ = ["MOST_LOST", "Found", "blame", "search"]

MOST_LOST = 0.001
"""The share of packets that may be missing against the profile."""

_MOST_WAIT = 0.010
"""Seconds of delay on top of the profile's at the end of a turn: a queue grows, and would
overflow in a longer one.
"""

_LEAST_SENT = 0.98
"""The share of what was to be sent that a generator must send, to be none of the reasons."""

_FULL_CORE = 0.85

_STEP = 1.25
_NEAR = 1.08
"""The highest clean rate and the lowest other one, when the search ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    best: Turn | None
    """None: no rate was clean."""
    stopped: Turn | None
    """The lowest rate that was not clean."""
    by: str | None = None
    """Who stopped it: `generator`, `receiver`, `emulator` or `kernel`."""
    turns: list[Turn] = field(default_factory=list)


def blame(turn: Turn) -> str | None:
    """Whose doing it is that a turn was not clean; None: it was clean."""
    load, counts = turn.load, turn.counts
    ages = [end.last_age for end in (turn.client, turn.server) if end.received]
    waited = max((age or 0.0 for age in ages), default=0.0) - load.delay
    if turn.unintended <= MOST_LOST and waited <= _MOST_WAIT:
        sent_all = turn.sent >= load.rate * load.seconds * _LEAST_SENT
        return None if sent_all else "generator"
    if counts.undelivered or counts.overflowed:
        return "emulator"
    if max(counts.behind, counts.lateness.max) > _MOST_WAIT / 2:
        return "emulator"
    if not counts.lateness.count and turn.emulator > _FULL_CORE:
        # A relay keeps no record of its own lateness.
        return "emulator"
    return "kernel" if counts.backlog and not counts.unread else "receiver"


def search(attempt: Callable[[float], Turn], guess: float, *, most: int, again: bool) -> Found:
    """By steps from `guess`, then by halves, with at most so many rates.

    With `again`, a rate that is not clean gets a second chance: other work on the machine may
    have been the reason.
    """
    best: Turn | None = None
    stopped: Turn | None = None
    by: str | None = None
    turns: list[Turn] = []
    rate = guess
    for _ in range(most):
        for _ in range(2 if again else 1):
            turns.append(attempt(rate))
            why = blame(turns[-1])
            if why is None:
                break
        if why is None:
            best = turns[-1]
        else:
            stopped, by = turns[-1], why
        if best is None or stopped is None:
            rate = rate * _STEP if stopped is None else rate / _STEP
        elif stopped.load.rate / best.load.rate < _NEAR:
            break
        else:
            rate = sqrt(best.load.rate * stopped.load.rate)
    return Found(best=best, stopped=stopped, by=by, turns=turns)
