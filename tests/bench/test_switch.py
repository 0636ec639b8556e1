"""`switch`: figures from what listeners tell, by plain numbers, and one tiny scenario."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bench.switch import run
from bench.switching.account import Account, Arrival, Decision
from bench.switching.conditions import DEATHS, blacked_out, dying, farther, path
from bench.switching.counting import read_snmp
from bench.switching.hearing import Hearing
from bench.switching.scenario import Setting, all_of, line, milliseconds
from bench.switching.stage import Noise, Stage
from netem.catalogue import Catalogue
from netem.profile import Block, Profile, Way
from tenuto.errors import OperatorError
from tenuto.media import AudioFormat, Frame

AUDIO = AudioFormat()


def account(
    arrivals: list[tuple[int, float, str]], events: list[dict[str, Any]] | None = None, **more: Any
) -> Account:
    record = {
        "began": 100.0,
        "arrivals": arrivals,
        "sha": "",
        "size": 0,
        "concealed": 0,
        "underruns": 0,
        "waited": 0,
        "gaps": 0,
        "duplicates": 0,
        "complete": True,
        "trouble": None,
        "lag": 0.0,
        "counts": [],
    }
    return Account.from_json({**record, **more}, events or [])


def paced(
    first: int, last: int, at: float, transport: str = "quic"
) -> list[tuple[int, float, str]]:
    """Frames of a server's schedule, 20 ms apart."""
    return [(each, at + (each - first) * 0.02, transport) for each in range(first, last)]


# Accounts


def test_an_account_knows_its_arrivals() -> None:
    told = account([*paced(0, 5, 100.5), *paced(5, 8, 101.0, "tcp"), (8, 101.06, "quic")])
    assert told.arrivals[0] == Arrival(0, 100.5, "quic")
    assert told.first_audio == 0.5
    assert told.switches == 2
    assert told.longest_gap() == pytest.approx(0.42)
    assert told.first_after(100.55) == pytest.approx(100.56)
    assert told.first_after(100.5, "tcp") == 101.0
    assert told.first_after(102.0) is None


def test_an_account_of_nothing() -> None:
    silent = account([])
    assert silent.first_audio is None
    assert (silent.switches, silent.longest_gap(), silent.silence) == (0, 0.0, 0.0)
    assert silent.decision(0.0) is None
    assert silent.last_in_time(1e9) is None
    assert silent.sent(1, 0.0, 1e9) == 0


def test_a_decision_is_when_another_leg_was_asked_for() -> None:
    moved = {"event": "moved", "at": 103.0, "first_frame": 0.4, "reason": "black hole"}
    asked = {"event": "moved", "at": 101.0, "first_frame": 0.1, "reason": "asked"}
    lost = {"event": "interrupted", "at": 102.8, "reason": "reset"}
    suspected = {"event": "suspected", "at": 102.0, "lag": 0.5}
    told = account([], [asked, suspected, lost, moved])
    assert told.decision(100.0) == Decision(102.6, "black hole")
    assert told.decision(102.7) == Decision(102.8, "lost: reset")
    assert told.decision(102.9) is None
    assert [event["at"] for event in told.named("moved", "suspected")] == [101.0, 102.0, 103.0]


def test_the_last_frame_in_time_is_that_before_a_trickle() -> None:
    # The lead comes at once, then the schedule, then one frame every half second.
    lead = [(each, 100.0, "quic") for each in range(100)]
    told = account([*lead, *paced(100, 150, 100.02), (150, 101.6, "quic"), (151, 102.1, "quic")])
    assert told.last_in_time(105.0) == pytest.approx(101.0)
    assert told.last_in_time(100.5) == pytest.approx(100.48)
    assert (told.transport_at(101.0), told.transport_at(99.0)) == ("quic", None)


def test_packets_are_counted_between_two_moments() -> None:
    counts = [(float(at), 10 * at, at, 0) for at in range(10)]
    assert account([], counts=counts).sent(1, 2.0, 5.5) == 30
    assert account([], counts=counts).sent(3, 0.0, 9.0) == 0


# Hearing


def heard(arrivals: list[tuple[int, float]]) -> Hearing:
    hearing = Hearing()
    for sequence, at in arrivals:
        samples = AUDIO.samples_per_frame
        payload = bytes(AUDIO.frame_size)
        hearing.frame(Frame(sequence, payload, samples), AUDIO, "quic", at)
    return hearing


def test_a_gap_that_the_lead_covers_is_not_heard() -> None:
    lead = [(each, 10.0) for each in range(100)]
    hearing = heard([*lead, *((each, 11.5 + each * 0.001) for each in range(100, 150))])
    hearing.finish()
    told = hearing.told()
    assert (told["underruns"], told["concealed"], told["size"]) == (0, 0, 150 * AUDIO.frame_size)
    assert told["sha"] == hashlib.sha256(bytes(150 * AUDIO.frame_size)).hexdigest()


def test_a_longer_one_is() -> None:
    lead = [(each, 10.0) for each in range(100)]
    hearing = heard([*lead, (100, 15.0)])
    assert hearing.told()["underruns"] == 1
    assert int(str(hearing.told()["waited"])) > 100


def test_a_loudspeaker_that_sleeps_misses_nothing() -> None:
    hearing = heard([(each, 10.0) for each in range(100)])
    assert hearing.heard is None
    hearing.sleep(10.5)
    assert hearing.heard == 24
    hearing.listen(99.0)
    hearing.wake(100.0)
    hearing.listen(101.0)
    hearing.finish()
    assert hearing.told()["underruns"] == 0


def test_nothing_heard() -> None:
    hearing = Hearing()
    hearing.listen(5.0)
    hearing.finish()
    assert (hearing.told()["underruns"], hearing.told()["size"], hearing.heard) == (0, 0, None)


# Conditions and options


def test_profiles() -> None:
    clear = path(0.060)
    assert (clear.up.delay, clear.down.delay, clear.up.loss) == (0.030, 0.030, None)
    assert dying(clear, "down only").block == Block(way=Way.DOWN)
    assert all(dying(clear, how).block or dying(clear, how).police for how in DEATHS)
    out = blacked_out(path(0.060, loss=0.02), 3.0)
    assert out.up.blackouts == out.down.blackouts
    assert (out.up.blackouts[0].length, out.up.loss) == (3.0, path(0.060, loss=0.02).up.loss)
    far = farther(Catalogue().load("udp-blocked-drop"), 0.080)
    assert (far.name, far.up.delay) == ("udp-blocked-drop, RTT 80 ms", 0.040)
    assert far.block == Block()


def test_counters_of_the_kernel() -> None:
    told = ["Udp: InDatagrams OutDatagrams", "Udp: 3 4", "UdpLite: OutDatagrams", "UdpLite: 9"]
    assert read_snmp(told)["Udp", "OutDatagrams"] == 4


# Lines


def test_a_line_has_its_limits_beside_its_figures() -> None:
    there = line(4, "rebind", {"lost": 0}, {"lost": 0}, met=True)
    assert (there["line"], there["lost"], there["met"]) == (4, 0, True)
    assert there["limits"] == {"lost": 0}


def test_times_that_never_came_are_counted_apart() -> None:
    assert milliseconds([]) == {"of": 0, "never": 0}
    assert milliseconds([0.1, None]) == {"median": 100.0, "most": 100.0, "of": 1, "never": 1}
    assert milliseconds([0.1, 0.2, 0.3])["p90"] == 280.0


def test_noise_is_whole_or_not() -> None:
    noise = Noise("n.wav", 1.0, b"pcm")
    sha = hashlib.sha256(b"pcm").hexdigest()
    assert noise.is_whole(account([], sha=sha))
    assert not noise.is_whole(account([], sha=sha, complete=False))
    assert not noise.is_whole(account([], sha="0"))


def test_a_scenario_that_is_none() -> None:
    with pytest.raises(OperatorError, match="'deth' is no scenario .*deaths"):
        next(run(True, ["deth"]))


# The whole, in small


def test_a_stream_is_moved_and_its_path_changed_under_it(tmp_path: Path) -> None:
    async def flow(stage: Stage, noise: Noise) -> Account:
        async with stage.seat(path(0.020), 1) as seat:
            seat.go({"file": noise.name, "lead": 1}, transport="quic", counted=True)
            await seat.first_frame()
            seat.do("move", to="tcp")
            assert await seat.nth("moved", 1, 10.0)
            seat.change(dying(path(0.020), "both ways"), 1)
            return await seat.over(20.0)

    async def refused(stage: Stage) -> Account:
        async with stage.seat(Profile(name="clear"), 1) as seat:
            seat.go({"file": "none.wav"})
            assert await seat.until(lambda told: told["event"] == "first-frame", 10.0) is None
            return await seat.over(10.0)

    async def both(stage: Stage) -> list[Account]:
        await stage.ready()
        noise = stage.noise(2.0)
        first, second = await all_of("flows", [flow(stage, noise), refused(stage)])
        assert noise.is_whole(first)
        return [first, second]

    with asyncio.Runner() as runner, closing(Stage(tmp_path, 1)) as stage:
        whole, failed = runner.run(both(stage))
        assert Setting(stage, quick=True).of(10, 1) == 1
    assert whole.trouble is None
    assert whole.switches == 1
    assert (whole.gaps, whole.underruns) == (0, 0)
    # A report of what was heard takes a connection of its own beside that of the audio.
    assert whole.sent(3, 0.0, float("inf")) in (1, 2)
    assert failed.trouble is not None
    assert "none.wav" in failed.trouble
    assert failed.arrivals == ()
