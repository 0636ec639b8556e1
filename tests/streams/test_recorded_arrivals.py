"""Arrivals as they come over the real doors, recorded, and replayed to a player in virtual time.

The tones show what a clean path costs, the model's steps what bursts cost. All listeners listen
at once, and what they wrote down goes through the file format before it is played.
"""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from bench.process import ServerProcess
from tenuto.client import TransportChoice, Trust, open_stream
from tenuto.client.arrivals import (
    ArrivalEvent,
    Arrivals,
    ArrivalsHeader,
    event_line,
    header_line,
    read_arrivals,
)
from tenuto.media import AudioFormat, Frame
from tenuto.playout import Player, PlayoutMode

SECONDS = 9.5
LEAD = 0.2
MODES: list[PlayoutMode] = ["live", "gapless"]
STALLED = 0.02
"""Later than its schedule by more than this comes a frame only if something stood still."""
BUSY = 0.01
"""A machine on which a sleeper wakes up so late is what stood still."""
SETTLED = 8.0
"""By then mode `live` has lost the lead: 25 ms in a second, in lumps of a second."""
RUN_IN = 2.0
DRY = 0.05
"""Share of turns that may find nothing: one delay in twenty may lie above the quantile."""


@dataclass(frozen=True)
class Way:
    """One listener."""

    name: str
    transport: TransportChoice
    params: dict[str, str]
    period: float
    """Seconds of sound in what comes together: a chunk, or a step of the model."""


TONE = {"source": "tone", "seconds": "60"}
MODEL = {"source": "model", "seconds": "60", "rtf": "1.0"}
WAYS = [
    Way("tone quic", "quic", TONE, 0.02),
    Way("tone tcp chunk=1", "tcp", {**TONE, "chunk": "1"}, 0.02),
    Way("tone tcp", "tcp", TONE, 0.1),
    Way("model quic", "quic", MODEL, 0.16),
    Way("model tcp", "tcp", MODEL, 0.16),
]


async def listen(server: ServerProcess, way: Way) -> str:
    """The recording, as a file would hold it."""
    came: list[tuple[float, int]] = []
    url, trust = f"{server.url}/v1/speak", Trust(cafile=server.ca)
    started = time.monotonic()
    async with open_stream(
        url, transport=way.transport, params=way.params, lead=LEAD, trust=trust
    ) as stream:
        audio = stream.format
        async for frame in stream:
            came.append((time.monotonic() - started, frame.sequence))
            if came[-1][0] - came[0][0] > SECONDS:
                break
    header = ArrivalsHeader(
        way.transport,
        "live",
        LEAD,
        round(way.period / 0.02),
        audio.rate,
        audio.channels,
        "2026-01-02T03:04:05+00:00",
    )
    lines = io.StringIO()
    lines.write(header_line(header))
    for at, frames in groupby(came, key=lambda one: one[0]):
        sequences = [sequence for _at, sequence in frames]
        assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))
        lines.write(event_line(ArrivalEvent(at, sequences[0], len(sequences))))
    return lines.getvalue()


def stall(arrivals: Arrivals, way: Way) -> float:
    """By how much the latest frame came later than its schedule."""
    came = list(arrivals.frames())
    worst = 0.0
    for number, (at, sequence) in enumerate(came):
        lately = [t - s * 0.02 for t, s in came[max(0, number - 100) : number + 1]]
        worst = max(worst, at - sequence * 0.02 - min(lately))
    return worst - (way.period - 0.02)


async def watch(late: list[float]) -> None:
    """Note how late a sleeper in this loop wakes up, once the connections stand."""
    await asyncio.sleep(1)
    while True:
        due = time.monotonic() + 0.005
        await asyncio.sleep(0.005)
        late.append(time.monotonic() - due)


async def record(server: ServerProcess, folder: Path) -> dict[str, Arrivals]:
    """What every listener got, through the files."""
    texts = await asyncio.gather(*(listen(server, way) for way in WAYS))
    found = {}
    for way, text in zip(WAYS, texts, strict=True):
        path = folder / f"{way.name}.arrivals"
        path.write_text(text, "utf-8")
        with path.open(encoding="utf-8") as lines:
            found[way.name] = read_arrivals(lines, path.name)
    return found


@dataclass(frozen=True)
class Turn:
    now: float
    """Since the first frame came."""
    kind: str
    delay: float
    target: float


def voice(audio: AudioFormat) -> list[bytes]:
    """A second of 125 Hz with overtones, as frames."""
    moments = np.arange(audio.rate) / audio.rate
    sound = np.sum([np.sin(2 * np.pi * 125 * n * moments) / n for n in range(1, 9)], axis=0)
    data = np.repeat(np.rint(5000 * sound).astype("<i2"), audio.channels).tobytes()
    return [
        data[place : place + audio.frame_size] for place in range(0, len(data), audio.frame_size)
    ]


def replay(arrivals: Arrivals, mode: PlayoutMode) -> list[Turn]:
    """Play for as long as frames came, each block when the one before has sounded."""
    audio = AudioFormat(arrivals.header.rate, arrivals.header.channels)
    sound = voice(audio)
    came = list(arrivals.frames())
    player = Player(audio, mode=mode)
    turns: list[Turn] = []
    now = begins = came[0][0]
    while True:
        while came and came[0][0] <= now:
            at, sequence = came.pop(0)
            payload = sound[sequence % len(sound)]
            assert player.insert(Frame(sequence, payload, audio.samples_per_frame), at)
        if not came:
            return turns
        delay, target = player.delay(now), player.target
        block = player.read(now)
        turns.append(Turn(now - begins, block.kind, delay, target))
        now += block.duration


def complaints(way: Way, arrivals: Arrivals) -> list[str]:
    """What is wrong with how these are played."""
    found = []
    live, gapless = (replay(arrivals, mode) for mode in MODES)
    for mode, turns in (("live", live), ("gapless", gapless)):
        assert turns[-1].now > SECONDS - 1
        later = [turn for turn in turns if turn.now > RUN_IN]
        dry = [turn for turn in later if turn.kind != "played"]
        if len(dry) > DRY * len(later):
            found.append(f"{mode}: {len(dry)} of {len(later)} turns dry, the first {dry[0]}")
    # What comes together needs a delay of its own length: the first of a chunk's frames is as
    # old as the chunk when it comes. 40 ms more are the buffer's.
    most = 0.04 if way.period == 0.02 else way.period + 0.04
    settled = [turn for turn in live if turn.now > SETTLED]
    target, delay = max(one.target for one in settled), max(one.delay for one in settled)
    if max(target, delay) > most:
        found.append(f"live: settled at target {target:.3f}, delay {delay:.3f}, not {most:.3f}")
    return [f"{way.name}: {one}" for one in found]


async def test_players_of_recorded_arrivals_settle_and_do_not_run_dry(
    server_process: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    """A recording in which the machine stood still is made again, once: no bound gives way."""
    server = server_process()
    said = []
    for _ in range(2):
        late: list[float] = []
        watching = asyncio.create_task(watch(late))
        recorded = await record(server, tmp_path)
        watching.cancel()
        stalled = {way.name: stall(recorded[way.name], way) for way in WAYS}
        wrong = [one for way in WAYS for one in complaints(way, recorded[way.name])]
        if not wrong:
            return
        assert max(stalled.values()) > STALLED, wrong
        assert max(late) > BUSY, (stalled, wrong)
        said.append(f"frames up to {max(stalled.values()):.3f} s late, a sleeper {max(late):.3f}")
        said += wrong
    pytest.skip("the machine stood still twice: " + "; ".join(said))
