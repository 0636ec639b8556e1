"""The quick matrix once, as a user runs it: what holds of it on any machine, however slow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from bench.lab.modes import MODES
from bench.lab.record import Flow, Results
from netem.catalogue import Catalogue
from netem.link.packet import Packet
from netem.link.path import Path
from netem.profile import Way
from tests.lab.labrun import LabRun
from tests.netem.outer import outer_network

FRAMES = 200
ONE_WAY = 0.040


@dataclass(frozen=True, slots=True)
class Matrix:
    run: LabRun
    results: Results

    def flows(self, profile: str, mode: str | None = None) -> list[Flow]:
        """Of the last attempts."""
        last = {wave.profile: number for number, wave in enumerate(self.results.waves)}
        return [
            flow
            for flow in self.results.flows
            if flow.wave == last[profile] and mode in (None, flow.mode)
        ]


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    folder = tmp_path_factory.mktemp("lab") / "run"
    with outer_network() as outer:
        before = outer.state()
        profiles = ["--profile", "rtt80", "--profile", "rtt80-loss5"]
        run = LabRun(outer, folder, ["--quick", *profiles])
        results = run.completed()
        assert outer.state() == before
        assert outer.survivors() == []
        yield Matrix(run, results)


def test_every_mode_ran_with_every_seed_over_every_profile(matrix: Matrix) -> None:
    results = matrix.results
    assert results.complete
    assert [mode.name for mode in results.setting.modes] == list(MODES)
    assert results.setting.seeds == (1, 2)
    for profile in ("rtt80", "rtt80-loss5"):
        ran = sorted((flow.mode, flow.seed) for flow in matrix.flows(profile))
        assert ran == sorted((mode, seed) for mode in MODES for seed in (1, 2))
    assert {len(flow.delays) for flow in results.flows} == {FRAMES}
    assert {wave.attempt for wave in results.waves} <= {1, 2}


def test_nothing_is_lost_where_the_link_loses_nothing(matrix: Matrix) -> None:
    for flow in matrix.flows("rtt80"):
        assert (flow.trouble, flow.drops, flow.duplicates > 0) == (
            None,
            (),
            flow.mode == "ref-datagram-copy-floor",
        )
        assert None not in flow.delays
        assert (flow.up.dropped, flow.down.dropped) == (0, 0)


def test_nothing_is_faster_than_the_link(matrix: Matrix) -> None:
    for flow in matrix.results.flows:
        assert all(delay is None or delay >= ONE_WAY for delay in flow.delays)
        assert flow.handshake is not None
        assert flow.handshake >= 2 * ONE_WAY
        assert flow.first_audio is not None
        assert flow.first_audio >= flow.handshake + 2 * ONE_WAY


def test_what_the_link_loses_is_missing_or_repaired(matrix: Matrix) -> None:
    profile = "rtt80-loss5"
    for mode in ("ref-datagram", "ref-datagram-floor"):
        assert any(None in flow.delays for flow in matrix.flows(profile, mode))
    for mode in ("quic-stream", "ref-streams", "ref-streams-floor"):
        for flow in matrix.flows(profile, mode):
            assert None not in flow.delays
            repaired = [delay for delay in flow.delays if delay and delay > 3 * ONE_WAY]
            assert repaired, "a frame that was sent again has crossed the link three times"


def test_bytes_and_drops_are_counted(matrix: Matrix) -> None:
    for flow in matrix.flows("rtt80-loss5"):
        assert flow.down.size > FRAMES * 640
        assert 0 < flow.up.size < flow.down.size
        assert flow.up.packets > 0
        assert len(flow.drops) == flow.up.dropped + flow.down.dropped > 0
        assert {drop.way for drop in flow.drops} <= {"up", "down"}
        assert {drop.cause for drop in flow.drops} == {"lost"}
    copies = matrix.flows("rtt80-loss5", "ref-datagram-copy-floor")
    assert all(flow.down.size > 2 * FRAMES * 640 for flow in copies)


def test_the_link_drops_what_its_seed_says(matrix: Matrix) -> None:
    for flow in matrix.flows("rtt80-loss5"):
        for way, wire in ((Way.UP, flow.up), (Way.DOWN, flow.down)):
            assert wire.dropped == drops_of("rtt80-loss5", flow.seed, way, wire.packets)


def drops_of(profile: str, seed: int, way: Way, packets: int) -> int:
    """How many of the first packets, by the link alone."""
    path = Path(Catalogue().load(profile), seed, 0.0)
    for number in range(packets):
        path.offer(way, Packet(b"", 0), number * 0.020)
    tally = path.tally()
    return (tally.up if way is Way.UP else tally.down).link.lost


def test_the_machine_was_watched(matrix: Matrix) -> None:
    for wave in matrix.results.waves:
        machine = wave.machine
        assert 0 < machine.emulator_p99 <= machine.emulator_max
        assert 0 < machine.cores_busy <= 1
        assert 0 < machine.busiest < 2
        assert machine.busiest_name
        assert machine.loop_lag > 0
        assert machine.send_lag > 0


def test_it_can_be_repeated(matrix: Matrix) -> None:
    setting = matrix.results.setting
    assert setting.command.startswith("tenuto lab --profile rtt80 --profile rtt80-loss5 --mode ")
    assert setting.command.endswith(" --seeds 2 --seconds 4")
    assert {"tenuto", "aioquic", "hypercorn", "python", "kernel", "cores"} <= set(setting.versions)
    assert setting.driver == "tun"
    assert "loss 5 %" in setting.profiles[1].text


def test_report_and_summary_and_progress(matrix: Matrix) -> None:
    run = matrix.run
    assert run.report.lower().startswith("<!doctype html>")
    assert all(mode in run.report for mode in MODES)
    assert "rtt80-loss5" in run.out
    assert "lab: 8 modes x 2 seeds of 4 s x 2 profiles, 16 flows at once, in 2 waves:" in run.told
    assert "wave 2 of 2: rtt80-loss5, seeds 1, 2 (about " in run.told
    assert f"the report is {run.folder}" in run.told
    assert sorted(each.name for each in run.folder.iterdir()) == ["report.html", "results.json"]
