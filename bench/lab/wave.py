"""One wave: every slot's flow is started in its turn, and heard until it is over."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bench.lab.errors import LabFailedError
from bench.lab.interruption import Interruption
from bench.lab.listening.heard import Record
from bench.lab.machine import Usage, machine_of
from bench.lab.plan import LINGER, SPREAD, Plan, Task
from bench.lab.record import Flow, Machine
from bench.lab.slots import Heading, Slot
from bench.lab.stage import Stage
from netem.drivers.report import BedTally

__all__ = ["Outcome", "run_wave", "warm_up"]

_LOOK: Final = 0.25
_SPARE: Final = 10.0
"""Seconds beyond the longest wave, for a machine that is slow."""

_SHIFT: Final = 3
"""Places by which the order of starting goes on from wave to wave."""

_WARM_FRAMES: Final = 5
_WARM_PATIENCE: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    flows: tuple[Flow, ...]
    machine: Machine


@dataclass(slots=True)
class _Turn:
    """What a slot does in this wave."""

    slot: Slot
    begin: float
    heading: Heading | None
    """None: it is only warmed up."""
    begun: bool = False
    closed: bool = False
    taken: tuple[Flow, Record, BedTally] | None = None


@dataclass(slots=True)
class _Wave:
    stage: Stage
    interruption: Interruption
    turns: list[_Turn]
    begin: Callable[[_Turn], None]
    on_look: Callable[[], None]
    over: list[_Turn] = field(default_factory=list)

    def run(self, patience: float) -> None:
        deadline = time.monotonic() + patience
        with selectors.DefaultSelector() as selector:
            selector.register(self.interruption, selectors.EVENT_READ)
            for turn in self.turns:
                selector.register(turn.slot.program, selectors.EVENT_READ, turn)
            while not all(turn.closed for turn in self.turns):
                for key, _ in selector.select(self._wait()):
                    if key.data is not None:
                        self._answered(key.data)
                self._start_due()
                self._look(deadline)

    def _wait(self) -> float:
        waiting = [turn.begin for turn in self.turns if not turn.begun]
        if not waiting:
            return _LOOK
        return min(_LOOK, max(0.0, min(waiting) - time.monotonic()))

    def _start_due(self) -> None:
        for turn in self.turns:
            if not turn.begun and turn.begin <= time.monotonic():
                self.begin(turn)
                turn.begun = True

    def _answered(self, turn: _Turn) -> None:
        for answer in turn.slot.program.answers():
            if "record" in answer:
                self._record(turn, answer["record"])
            turn.closed = turn.closed or "closed" in answer

    def _record(self, turn: _Turn, told: dict[str, Any]) -> None:
        if turn.heading is None:
            if told["trouble"]:
                raise LabFailedError(
                    f"{turn.slot.program.name} hears nothing over a clear link: {told['trouble']}"
                )
            turn.slot.let_go()
        else:
            turn.taken = turn.slot.take(told, turn.heading)

    def _look(self, deadline: float) -> None:
        self.interruption.check()
        self.stage.check()
        for turn in self.turns:
            turn.slot.check()
        self.on_look()
        if time.monotonic() > deadline:
            names = ", ".join(turn.slot.program.name for turn in self.turns if not turn.closed)
            raise LabFailedError(f"no word from {names} in time")


def warm_up(stage: Stage, slots: Sequence[Slot], interruption: Interruption) -> None:
    """A few frames over clear links: a process pays once for what it has never done before."""
    now = time.monotonic()

    def begin(turn: _Turn) -> None:
        turn.slot.go(_WARM_FRAMES, _WARM_PATIENCE, None)

    turns = [_Turn(slot, now, None) for slot in slots]
    _Wave(stage, interruption, turns, begin, lambda: None).run(_SPARE + len(slots))
    stage.rest()


def run_wave(
    stage: Stage,
    slots: Sequence[Slot],
    plan: Plan,
    task: Task,
    number: int,
    interruption: Interruption,
    on_look: Callable[[], None] = lambda: None,
) -> Outcome:
    """`number` counts all waves that were run.

    Raises `Interrupted` at a signal, `LabFailedError` where the lab itself gives out.
    """
    start = time.monotonic()
    turns = _turns(slots, task, number, start)

    def begin(turn: _Turn) -> None:
        assert turn.heading is not None
        turn.slot.go(plan.frames, LINGER, (task.profile, turn.heading.seed))

    meter = _Meter(stage, turns, start + SPREAD, start + max(plan.seconds, SPREAD))

    def look() -> None:
        meter.look()
        on_look()

    _Wave(stage, interruption, turns, begin, look).run(plan.longest_wave + _SPARE)
    taken = [turn.taken for turn in turns if turn.taken is not None]
    lag = max(record.loop_lag for _, record, _ in taken)
    machine = machine_of(
        meter.used(),
        [tally for _, _, tally in taken],
        first=stage.first,
        loop_lag=lag,
        send_lag=stage.rest(),
    )
    return Outcome(flows=tuple(flow for flow, _, _ in taken), machine=machine)


def _turns(slots: Sequence[Slot], task: Task, number: int, start: float) -> list[_Turn]:
    used = [slot for slot in slots if slot.number < len(task.seeds)]
    # Who is first has an emptier machine for his handshake: each wave another one.
    shift = number * _SHIFT % len(used)
    order = used[shift:] + used[:shift]
    return [
        _Turn(
            slot,
            start + SPREAD * place / len(order),
            Heading(profile=task.profile.name, seed=task.seeds[slot.number], wave=number),
        )
        for place, slot in enumerate(order)
    ]


class _Meter:
    """Usage at the two ends of the time in which all flows run."""

    def __init__(self, stage: Stage, turns: Sequence[_Turn], first: float, last: float) -> None:
        programs = [*stage.programs, *(turn.slot.program for turn in turns)]
        self._programs = [(each.name, each.pid) for each in programs]
        self._emulators = [turn.slot.bed.emulator_pid for turn in turns]
        self._due = [first, last]
        self._usages: list[Usage] = []

    def look(self) -> None:
        if self._due and time.monotonic() >= self._due[0]:
            self._due.pop(0)
            self._take()

    def used(self) -> Usage:
        while len(self._usages) < 2:
            self._take()
        return self._usages[1].since(self._usages[0])

    def _take(self) -> None:
        self._usages.append(Usage.now(self._programs, self._emulators))
