"""What a run does, in which order, and how long it takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.lab.listening.heard import FIRST_WITHIN
from bench.lab.modes import Mode
from bench.lab.payload import FRAME_NANO
from netem.profile import Profile

__all__ = ["LINGER", "SPREAD", "Pace", "Plan", "Task", "slots_for"]

SPREAD: Final = 1.0
"""Seconds over which the flows of a wave are started: handshakes are the costly part of one."""

LINGER: Final = 3.0
"""Seconds that a listener waits for what is missing, once its last frame was due."""

_MOST_SLOTS: Final = 16
"""Flows at once: the servers are processes of one core each."""

_SLOTS_PER_CORE: Final = 8

_SET_UP: Final = 2.0
_SET_UP_SLOT: Final = 0.35
_AROUND: Final = 3.5
"""Seconds of a wave beside its audio, before any is over: start, linger, rest."""
_REPORT: Final = 3.0


def slots_for(modes: int, seeds: int, cores: int | None = None) -> int:
    """Seeds in a wave. All modes run at once, so that what disturbs one disturbs all."""
    most = min(_MOST_SLOTS, _SLOTS_PER_CORE * (cores or os.cpu_count() or 1))
    return max(1, min(most // modes, seeds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A wave to be: every mode over the links of these seeds."""

    profile: Profile
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    modes: tuple[Mode, ...]
    profiles: tuple[Profile, ...]
    seeds: int
    seconds: float
    at_once: int = 0
    """Seeds in a wave; 0: as many as the machine takes."""
    tasks: tuple[Task, ...] = field(init=False)

    def __post_init__(self) -> None:
        together = self.at_once or slots_for(len(self.modes), self.seeds)
        object.__setattr__(self, "at_once", together)
        object.__setattr__(self, "tasks", _tasks(self.profiles, self.all_seeds, together))

    @property
    def all_seeds(self) -> tuple[int, ...]:
        return tuple(range(1, self.seeds + 1))

    @property
    def frames(self) -> int:
        return max(1, round(self.seconds * 1e9 / FRAME_NANO))

    @property
    def slots(self) -> int:
        return len(self.modes) * self.at_once

    @property
    def longest_wave(self) -> float:
        """Seconds after which every listener has answered, whatever befell."""
        return SPREAD + FIRST_WITHIN + self.seconds + LINGER

    def estimate(self) -> float:
        """Seconds that the whole takes."""
        return Pace(self).left(0.0)


def _tasks(profiles: Sequence[Profile], seeds: Sequence[int], together: int) -> tuple[Task, ...]:
    """All profiles with the first seeds, then with the next: cut short, no profile is behind."""
    found: list[Task] = []
    for first in range(0, len(seeds), together):
        for profile in profiles:
            some = tuple(seeds[first : first + together])
            found.append(Task(profile=profile, seeds=some))
    return tuple(found)


class Pace:
    """How long the rest takes, judged by what is done."""

    def __init__(self, plan: Plan) -> None:
        self._set_up: float | None = _SET_UP + _SET_UP_SLOT * plan.slots
        self._guess = plan.seconds + _AROUND
        self._waves = len(plan.tasks)
        self._took: list[float] = []
        self._since = 0.0

    def set_up(self, now: float) -> None:
        """It is done; `now` counts from the start."""
        self._set_up = None
        self._since = now

    def finished(self, now: float, *, again: bool) -> None:
        """A wave is over; `again` if another one is put in its place."""
        self._took.append(now - self._since)
        self._since = now
        self._waves -= not again

    def left(self, now: float) -> float:
        """Seconds; what takes longer than expected does not make the end come nearer."""
        wave = sum(self._took) / len(self._took) if self._took else self._guess
        spent = now - self._since
        if self._set_up is not None:
            return max(0.0, self._set_up - spent) + self._waves * wave + _REPORT
        if not self._waves:
            return _REPORT
        return max(0.0, wave - spent) + (self._waves - 1) * wave + _REPORT
