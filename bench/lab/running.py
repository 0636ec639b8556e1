"""The whole of a run: set up, wave after wave, and what each of them makes of the results."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from bench.lab.interruption import Interruption
from bench.lab.plan import Pace, Plan, Task
from bench.lab.programs import hear
from bench.lab.record import Machine, Results, Wave
from bench.lab.setting import setting_of
from bench.lab.slots import Slot, choose_driver
from bench.lab.stage import Stage
from bench.lab.telling import Telling
from bench.lab.wave import Outcome, run_wave, warm_up

__all__ = ["Judge", "run"]

_LISTENERS_READY_WITHIN: Final = 60.0
_ATTEMPTS: Final = 2

Judge = Callable[[Machine], tuple[str, ...]]
"""Why the figures of a wave on such a machine do not count; nothing if they do."""


@dataclass(slots=True, kw_only=True)
class _Run:
    plan: Plan
    judge: Judge
    interruption: Interruption
    telling: Telling
    keep: Callable[[Results], None]
    pace: Pace
    began: float

    def say(self, what: str) -> None:
        self.look()
        self.telling.stage(what)

    def look(self) -> None:
        elapsed = self._elapsed()
        left = self.pace.left(elapsed)
        self.telling.progress(elapsed / max(elapsed + left, 1e-9), left)

    def slots(self, stage: Stage, driver: str, undo: contextlib.ExitStack) -> list[Slot]:
        """They end with `undo`."""
        made: list[Slot] = []
        for number in range(self.plan.at_once):
            for mode in self.plan.modes:
                self.interruption.check()
                self.say(f"making link {len(made) + 1} of {self.plan.slots}")
                made.append(
                    undo.enter_context(contextlib.closing(Slot(mode, number, driver, stage)))
                )
        return made

    def set_up(self, stage: Stage, slots: list[Slot]) -> None:
        """Until all that comes is the network's doing."""
        self.say("waiting for the servers and the listeners")
        stage.wait()
        listeners = [slot.program for slot in slots]
        hear(listeners, self.interruption, _LISTENERS_READY_WITHIN)
        self.say("warming up over clear links")
        warm_up(stage, slots, self.interruption)
        hurried = [each.hurry() for each in (*stage.programs, *listeners)]
        stage.first = all(hurried)
        self.pace.set_up(self._elapsed())

    def waves(self, stage: Stage, slots: list[Slot], results: Results) -> None:
        for place, task in enumerate(self.plan.tasks):
            for attempt in range(1, _ATTEMPTS + 1):
                wave, outcome = self._attempt(stage, slots, task, place, attempt, results)
                results = replace(
                    results,
                    waves=(*results.waves, wave),
                    flows=(*results.flows, *outcome.flows),
                    complete=self._is_last(task, wave),
                )
                again = bool(wave.faults) and attempt < _ATTEMPTS
                self.pace.finished(self._elapsed(), again=again)
                self.keep(results)
                self._tell(wave, outcome, again=again)
                if not again:
                    break
                self.interruption.check()

    def _is_last(self, task: Task, wave: Wave) -> bool:
        return task is self.plan.tasks[-1] and (not wave.faults or wave.attempt == _ATTEMPTS)

    def _attempt(
        self,
        stage: Stage,
        slots: list[Slot],
        task: Task,
        place: int,
        attempt: int,
        results: Results,
    ) -> tuple[Wave, Outcome]:
        again = ", again" if attempt > 1 else ""
        seeds = f"seed{'s' if len(task.seeds) > 1 else ''} {', '.join(map(str, task.seeds))}"
        whole = len(self.plan.tasks)
        self.say(f"wave {place + 1} of {whole}: {task.profile.name}, {seeds}{again}")
        number = len(results.waves)
        outcome = run_wave(stage, slots, self.plan, task, number, self.interruption, self.look)
        wave = Wave(
            profile=task.profile.name,
            seeds=task.seeds,
            attempt=attempt,
            machine=outcome.machine,
            faults=self.judge(outcome.machine),
        )
        return wave, outcome

    def _elapsed(self) -> float:
        return time.monotonic() - self.began

    def _tell(self, wave: Wave, outcome: Outcome, *, again: bool) -> None:
        for fault in wave.faults:
            self.telling.note(f"not valid: {fault}")
        if wave.faults:
            self.telling.note(
                "this wave is run once more" if again else "twice so: its figures do not count"
            )
        troubles = [flow for flow in outcome.flows if flow.trouble]
        for flow in troubles:
            self.telling.note(f"{flow.mode}, seed {flow.seed}: {flow.trouble}")


def run(
    plan: Plan,
    given: tuple[str, ...],
    judge: Judge,
    interruption: Interruption,
    telling: Telling,
    keep: Callable[[Results], None],
) -> None:
    """Measure; `keep` is given all results anew after every wave.

    `given`: the profiles as they were named. Raises `Interrupted`, and `OperatorError` where no
    link can be made here; whatever is raised, nothing of the lab is left behind.
    """
    started = _Run(
        plan=plan,
        judge=judge,
        interruption=interruption,
        telling=telling,
        keep=keep,
        pace=Pace(plan),
        began=time.monotonic(),
    )
    with contextlib.ExitStack() as undo:
        started.say("making the servers")
        stage = undo.enter_context(contextlib.closing(Stage(interruption)))
        driver = choose_driver(stage)
        slots = started.slots(stage, driver, undo)
        started.set_up(stage, slots)
        setting = setting_of(plan, given, driver, datetime.now(UTC))
        started.waves(stage, slots, Results(setting=setting))
