"""Ended at any moment, by whatever: what is finished is a report, and nothing is left behind."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.lab.labrun import LabRun
from tests.netem.outer import Outer, processes_with
from tests.netem.test_killed import assert_nothing_left, emulator_of, own_networks

SEED = 20_261_130
MOMENTS = 2

# Of these nothing stays lost: no flow waits for it.
SMALL = ["--seconds", "1", "--seeds", "1", "--mode", "ref-streams", "--mode", "tcp-cubic"]
TWO_WAVES = [*SMALL, "--profile", "rtt80", "--profile", "rtt80-loss5"]


def interrupted(run: LabRun, number: signal.Signals, *, group: bool = False) -> int:
    """Its status, and nothing of it is left."""
    before = run.outer.state()
    networks = own_networks(run.outer)
    if group:
        os.killpg(run.process.pid, number)
    else:
        run.process.send_signal(number)
    status = run.end()
    assert_nothing_left(run.outer, before, networks)
    return status


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("making the servers", signal.SIGINT),
        ("waiting for", signal.SIGHUP),
        ("wave 1 of 1", signal.SIGTERM),
    ],
    ids=["begin", "set-up", "wave"],
)
def test_before_a_wave_is_finished_there_is_no_report(
    outer: Outer, tmp_path: Path, word: str, number: signal.Signals
) -> None:
    run = LabRun(outer, tmp_path / "made" / "run", SMALL)
    run.until(word)
    assert interrupted(run, number) == 128 + number
    assert run.told.endswith(
        "lab: interrupted before a wave was finished: there is nothing to report\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_finished_part_is_a_report(outer: Outer, tmp_path: Path) -> None:
    run = LabRun(outer, tmp_path / "run", TWO_WAVES)
    run.until("wave 2 of 2")
    time.sleep(random.Random(SEED).uniform(0.0, 1.0))
    # As Ctrl-C on a terminal: all of its group get it.
    assert interrupted(run, signal.SIGINT, group=True) == 130
    results = run.results
    assert results is not None
    assert not results.complete
    assert {wave.profile for wave in results.waves} == {"rtt80"}
    assert {flow.mode for flow in results.flows} == {"ref-streams", "tcp-cubic"}
    assert "ref-streams" in run.report
    # Of an idle machine; of a busy one, that nothing counts.
    assert run.out


def test_killed_it_leaves_the_results_of_its_waves(outer: Outer, tmp_path: Path) -> None:
    run = LabRun(outer, tmp_path / "run", TWO_WAVES)
    run.until("wave 2 of 2")
    assert interrupted(run, signal.SIGKILL) == -signal.SIGKILL
    assert run.results is not None
    again = LabRun(outer, tmp_path / "again", ["--from", str(run.folder / "results.json")])
    assert again.end() == 0
    assert "ref-streams" in again.report


def test_at_any_moment(outer: Outer, tmp_path: Path) -> None:
    moments = random.Random(SEED)
    for number in range(MOMENTS):
        run = LabRun(outer, tmp_path / str(number), TWO_WAVES)
        moment = moments.uniform(0.3, 6.0)
        time.sleep(moment)
        kind = moments.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
        if run.process.poll() is None:
            status = interrupted(run, kind, group=moments.random() < 0.5)
            # It may just have ended by itself, and counted for nothing on a busy machine.
            ended = (-kind, 128 + kind, 0, 1)
            assert status in ended, f"{kind.name} after {moment:.2f} s: {run.told}"
        else:
            run.completed()
        assert run.results is None or run.results.waves


def test_what_dies_in_mid_run_is_named_and_the_finished_part_stands(
    outer: Outer, tmp_path: Path
) -> None:
    run = LabRun(outer, tmp_path / "run", TWO_WAVES)
    run.until("wave 2 of 2")
    ours = processes_with(outer.mark)
    server = next(each for each in ours if "quicserver" in each.command)
    os.kill(server.pid, signal.SIGKILL)
    assert run.end() == 1
    assert "the product's server has ended in mid-run (status -9: without a word)" in run.told
    assert run.results is not None
    assert "ref-streams" in run.report
    assert outer.survivors() == []


def test_a_script_can_tell_that_nothing_counts(outer: Outer, tmp_path: Path) -> None:
    run = LabRun(outer, tmp_path / "run", [*SMALL, "--profile", "rtt80"])
    for word in ("wave 1 of 1: rtt80, seed 1", "wave 1 of 1: rtt80, seed 1, again"):
        run.until(word)
        time.sleep(0.7)
        emulator = emulator_of(outer)
        os.kill(emulator.pid, signal.SIGSTOP)
        time.sleep(0.2)
        os.kill(emulator.pid, signal.SIGCONT)
    assert run.end() == 1
    assert run.told.endswith("lab: nothing counts on rtt80: the machine was too busy\n")
    assert "lab: this wave is run once more\n" in run.told
    assert "lab: twice so: its figures do not count\n" in run.told
    assert "emulator away, at most" in run.report
    results = run.results
    assert results is not None
    assert results.complete
    assert [wave.attempt for wave in results.waves] == [1, 2]
    assert [flow.wave for flow in results.flows] == [0, 0, 1, 1]
    assert results.valid_flows() == ()
    assert results.void_profiles() == ("rtt80",)
