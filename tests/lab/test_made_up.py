"""A mode that is not there yet runs like all others, by its one registration."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.lab.interruption import Interruption
from bench.lab.modes import MODES, Mode
from bench.lab.plan import Plan
from bench.lab.record import Results
from bench.lab.running import run
from netem.catalogue import Catalogue

MADE_UP = Mode(
    name="made-up",
    summary="a frame, and again, and again",
    listener="tests.lab.made_up:listen",
    options={"copies": 2},
    reference=True,
)
BROKEN = Mode(name="broken", summary="no such thing", listener="tests.lab.broken:listen")


@dataclass
class Told:
    notes: list[str] = field(default_factory=list)

    def stage(self, what: str) -> None:
        pass

    def progress(self, done: float, left: float) -> None:
        assert 0 <= done <= 1
        assert left >= 0

    def note(self, line: str) -> None:
        self.notes.append(line)


def measure(*modes: Mode, faults: tuple[str, ...] = ()) -> tuple[Results, list[str]]:
    plan = Plan(modes=modes, profiles=(Catalogue().load("rtt80"),), seeds=1, seconds=1)
    told = Told()
    kept: list[Results] = []
    with Interruption() as interruption:
        run(plan, ("rtt80",), lambda machine: faults, interruption, told, kept.append)
    return kept[-1], told.notes


def test_a_made_up_mode_runs_beside_ours() -> None:
    results, notes = measure(MODES["ref-streams"], MADE_UP)
    assert results.complete
    assert [mode.name for mode in results.setting.modes] == ["ref-streams", "made-up"]
    flow = next(flow for flow in results.flows if flow.mode == "made-up")
    assert None not in flow.delays
    assert flow.duplicates > 0
    assert flow.down.size > 3 * 50 * 640
    assert notes == []


def test_a_wave_that_is_not_valid_is_repeated_once_and_said_to_be_so() -> None:
    results, notes = measure(MADE_UP, faults=("the moon is full",))
    assert results.complete
    assert [(wave.attempt, wave.faults) for wave in results.waves] == [
        (1, ("the moon is full",)),
        (2, ("the moon is full",)),
    ]
    assert [flow.wave for flow in results.flows] == [0, 1]
    assert results.valid_flows() == ()
    assert notes == [
        "not valid: the moon is full",
        "this wave is run once more",
        "not valid: the moon is full",
        "twice so: its figures do not count",
    ]
