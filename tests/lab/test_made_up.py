"""A mode that is not there yet runs like all others, by its one registration."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from bench.lab.interruption import Interruption
from bench.lab.modes import MODES, Mode
from bench.lab.plan import Plan
from bench.lab.record import Results
from bench.lab.running import run
from netem.catalogue import Catalogue
from tests.lab.made_up import LATE

MADE_UP = Mode(
    name="made-up",
    summary="a frame, and again, and again",
    listener="tests.lab.made_up:listen",
    options={"copies": 2},
    reference=True,
)
LATE_BY_HAND = Mode(name="late", summary="no network", listener="tests.lab.made_up:listen_late")
FRAMES = 30


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


def measure(*modes: Mode, seeds: int) -> tuple[Results, list[str]]:
    profiles = (Catalogue().load("rtt80"),)
    plan = Plan(modes=modes, profiles=profiles, seeds=seeds, seconds=FRAMES * 0.020)
    told = Told()
    kept: list[Results] = []
    with Interruption() as interruption:
        run(plan, ("rtt80",), lambda machine: (), interruption, told, kept.append)
    return kept[-1], told.notes


def test_a_made_up_mode_runs_beside_ours() -> None:
    results, notes = measure(MODES["ref-streams"], MADE_UP, LATE_BY_HAND, seeds=2)
    assert results.complete
    names = ["ref-streams", "made-up", "late"]
    assert [mode.name for mode in results.setting.modes] == names
    ran = sorted((flow.mode, flow.seed) for flow in results.flows)
    assert ran == sorted((name, seed) for name in names for seed in (1, 2))
    for flow in results.flows:
        if flow.mode == "made-up":
            assert None not in flow.delays
            # A flow is over when the last frame is there, whatever copies of it are to come.
            assert 2 * (FRAMES - 2) <= flow.duplicates <= 2 * FRAMES
            assert flow.down.size > 3 * (FRAMES - 1) * 640
        if flow.mode == "late":
            assert [at for at, delay in enumerate(flow.delays) if delay is None] == [9, 19, 29]
            delays = [delay for delay in flow.delays if delay is not None]
            assert min(delays) >= LATE
            assert median(delays) < LATE + 0.005
            assert (flow.up.packets, flow.down.packets) == (0, 0)
    assert notes == []
