"""PortAudio itself, on a sound card that keeps time: what it plays, and what becomes of a loss."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.process import ServerProcess
from tests.support.pulsecard import RATE, PulseCard, missing

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"no sound card to test with: no {missing()}"),
]

TONE = 440
PEAK = 16384


@pytest.fixture
def card() -> Iterator[PulseCard]:
    with tempfile.TemporaryDirectory(prefix="pa-") as folder, PulseCard(Path(folder)) as card:
        yield card


@dataclass
class Playing:
    """`tenuto play --json` on the card, as it goes."""

    process: subprocess.Popen[str]
    lines: list[dict[str, Any]] = field(default_factory=list)
    opened: threading.Event = field(default_factory=threading.Event)

    def follow(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(json.loads(line))
            if self.lines[-1]["event"] == "device-opened":
                self.opened.set()

    def of(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == event]


@pytest.fixture
def play(
    card: PulseCard, server_process: Callable[..., ServerProcess], ca_file: Path
) -> Iterator[Callable[..., Playing]]:
    server = server_process()
    running: list[tuple[Playing, threading.Thread]] = []

    def start(seconds: float, *options: str) -> Playing:
        url = f"https://localhost:{server.port}/v1/speak?tone={TONE}&seconds={seconds}"
        command = [sys.executable, "-m", "tenuto.cli", "play", url, "--json", *options]
        process = subprocess.Popen(
            [*command, "--ca", str(ca_file)],
            env=card.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        playing = Playing(process)
        thread = threading.Thread(target=playing.follow)
        thread.start()
        running.append((playing, thread))
        return playing

    yield start
    for playing, thread in running:
        playing.process.kill()
        thread.join()
        playing.process.communicate()


def ended(playing: Playing, within: float) -> dict[str, Any]:
    assert playing.process.wait(within) == 0, playing.lines
    assert playing.process.stdout is not None
    while not playing.of("summary"):
        time.sleep(0.01)
    return playing.lines[-1]


def pitch(samples: NDArray[np.int16]) -> float:
    """By most of its periods: a hole in the sound does not change it."""
    up = np.flatnonzero((samples[:-1] < 0) & (samples[1:] >= 0))
    periods = np.sort(np.diff(up))
    tenth = len(periods) // 10
    return float(RATE / periods[tenth : len(periods) - tenth].mean())


def disturbed(summary: dict[str, Any]) -> int:
    """How often other processes kept us from the card's thread, or the server from us."""
    return int(summary["device_underflows"] + summary["playout"]["underruns"])


def undisturbed(
    card: PulseCard, play: Callable[..., Playing], seconds: float, *options: str
) -> tuple[dict[str, Any], NDArray[np.int16]]:
    """The summary, and what was heard; three attempts at one that nothing disturbs."""
    for _ in range(3):
        summary = ended(play(seconds, *options), 30)
        samples = card.heard("first")[-1]
        if not disturbed(summary):
            break
        card.kill()
        card.start()
    return summary, samples


def largest_step(samples: NDArray[np.int16]) -> float:
    """Against the steepest place of the tone itself."""
    own = PEAK * 2 * np.pi * TONE / RATE
    return float(np.abs(np.diff(samples.astype(int))).max() / own)


@pytest.mark.parametrize("options", [(), ("--no-drift",)])
def test_the_card_hears_the_tone_whole_and_without_a_break(
    card: PulseCard, play: Callable[..., Playing], options: tuple[str, ...]
) -> None:
    summary, samples = undisturbed(card, play, 3.0, *options)
    assert pitch(samples) == pytest.approx(TONE, rel=0.001)
    assert summary["device_reopened"] == 0
    assert summary["playout"]["played"] == 150
    # Three times other processes kept us from the card: each time it was told, and costs a hole.
    around = 0.03 + 0.15 * disturbed(summary)
    assert len(samples) / RATE == pytest.approx(3.0, abs=around)
    if not disturbed(summary):
        assert largest_step(samples) < 1.3


def test_live_on_the_card_is_as_long_as_it_says(
    card: PulseCard, play: Callable[..., Playing]
) -> None:
    """It nears its target by leaving out periods; the card is asked to hold less, too."""
    summary, samples = undisturbed(card, play, 4.0, "--mode", "live")
    playout = summary["playout"]
    expected = 4.0 + (playout["stretched_ms"] - playout["shrunk_ms"]) / 1000
    assert pitch(samples) == pytest.approx(TONE, rel=0.005)
    if not disturbed(summary):  # it holds so little that a busy machine disturbs it every time
        assert len(samples) / RATE == pytest.approx(expected, abs=0.05)
        assert playout["delay"] < 0.4
        assert largest_step(samples) < 1.5


def test_a_sink_that_is_pulled_out_makes_the_sound_move(
    card: PulseCard, play: Callable[..., Playing]
) -> None:
    card.add("second")
    playing = play(5.0)
    assert playing.opened.wait(20)
    time.sleep(2.0)
    card.remove("first")
    summary = ended(playing, 30)
    ((first,), (second,)) = card.heard("first"), card.heard("second")
    assert len(first) > RATE
    assert len(second) > RATE
    around = 0.6 + 0.15 * disturbed(summary)
    assert (len(first) + len(second)) / RATE == pytest.approx(5.0, abs=around)
    assert pitch(second) == pytest.approx(TONE, rel=0.005)


def test_a_sound_server_that_dies_and_comes_back_is_waited_for(
    card: PulseCard, play: Callable[..., Playing]
) -> None:
    playing = play(6.0)
    assert playing.opened.wait(20)
    time.sleep(2.0)
    card.kill()
    time.sleep(1.0)
    card.start()
    summary = ended(playing, 40)
    assert playing.of("device-lost")
    assert summary["device_reopened"] >= 1
    assert summary["complete"]
    before, after = card.heard("first")
    assert len(before) > RATE
    assert pitch(after) == pytest.approx(TONE, rel=0.005)
    around = 0.6 + 0.15 * disturbed(summary)
    assert (len(before) + len(after)) / RATE == pytest.approx(6.0, abs=around)


def test_a_sound_server_that_stays_dead_ends_the_command(
    card: PulseCard, play: Callable[..., Playing]
) -> None:
    playing = play(60.0)
    assert playing.opened.wait(20)
    card.kill()
    assert playing.process.wait(40) == 2
    assert playing.process.stderr is not None
    line = playing.process.stderr.read().splitlines()[-1]
    assert line.startswith("tenuto: the loudspeaker was lost (")
    assert "--output speech.wav" in line


def test_a_sound_server_that_hangs_from_the_start_hangs_nobody(
    card: PulseCard, play: Callable[..., Playing]
) -> None:
    card.freeze()
    started = time.monotonic()
    process = play(5.0).process
    assert process.wait(20) == 2
    assert time.monotonic() - started < 15
    assert process.stderr is not None
    line = process.stderr.read()
    assert line.startswith("tenuto: the loudspeaker did not open within 5 s. choose another"), line
    interrupted = play(5.0).process
    time.sleep(2.0)
    interrupted.send_signal(signal.SIGINT)
    assert interrupted.wait(5) == 130
