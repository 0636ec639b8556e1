"""A client's process stands still for seconds (SIGSTOP), and goes on: what its listener has then.

The source is live and wide, so that no kernel's buffer holds what is sent meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from quicserver.app import Server
from tenuto.client import Transport, Trust, open_stream, session_url
from tenuto.media import AudioFormat, Frame
from tenuto.sources import read_clock
from tenuto.sources.clock import clock_payload
from tests.conftest import StartServer

DOORS: tuple[Transport, ...] = ("quic", "tcp")

FRAMES = 300
BEFORE, STOPPED = 0.5, 3.0
LATE = 1.0
"""Seconds: more than the lead and the slack of a `live` listener, and less than a stop."""

CLIENT = """
import asyncio, json, sys, time
from pathlib import Path
from tenuto.client import GapSeen, Trust, open_stream
url, ca, transport = sys.argv[1:]
def say(**fields):
    print(json.dumps(fields), flush=True)
def note(event):
    if isinstance(event, GapSeen):
        say(gap=event.sequence, count=event.count, announced=event.announced)
async def main():
    trust = Trust(cafile=Path(ca))
    params = {"mode": "live", "lead": 0.2}
    async with open_stream(
        url, transport=transport, trust=trust, params=params, on_event=note
    ) as stream:
        async for frame in stream:
            due = int.from_bytes(frame.payload[4:12], "big")
            say(sequence=frame.sequence, at=time.monotonic(), late=time.monotonic() - due * 1e-9)
asyncio.run(main())
"""


class Wide:
    """Live, 96 kHz stereo: frames as of `ClockSource`, from when the gate opens."""

    kind = "wide"
    format = AudioFormat(96_000, 2)
    pausable = False
    patience = None

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def stream(self) -> AsyncGenerator[bytes, None]:
        await self.gate.wait()
        start = time.monotonic_ns()
        for number in range(FRAMES):
            due = start + number * 20_000_000
            await asyncio.sleep((due - time.monotonic_ns()) * 1e-9)
            yield clock_payload(number, due, self.format.frame_size)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One in our process, who is to notice nothing."""

    frames: list[Frame]
    times: list[float]

    @property
    def pcm(self) -> bytes:
        return b"".join(frame.payload for frame in self.frames)


async def neighbour(url: str, transport: Transport, ca: Path) -> Neighbour:
    frames: list[Frame] = []
    times: list[float] = []
    async with open_stream(
        url, transport=transport, trust=Trust(cafile=ca), params={"lead": 0.2}
    ) as stream:
        async for frame in stream:
            frames.append(frame)
            times.append(time.monotonic())
    return Neighbour(frames, times)


async def process(*arguments: str | Path) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, *map(str, arguments), stdout=PIPE, stderr=PIPE, limit=1 << 20
    )


async def until_attached(server: Server, count: int) -> None:
    async with asyncio.timeout(20):
        while server.host.listeners < count:
            await asyncio.sleep(0.02)


def judge_live(said: bytes, went_on: float) -> None:
    """Back at the present within 5 s, and what is missing is marked, no more and no less."""
    lines = [json.loads(line) for line in said.splitlines()]
    heard = [line["sequence"] for line in lines if "sequence" in line]
    gaps = [line for line in lines if "gap" in line]
    missed = [line["gap"] + n for line in gaps for n in range(line["count"])]
    assert sorted([*heard, *missed]) == list(range(FRAMES))
    assert heard == sorted(heard)
    assert all(line["announced"] for line in gaps)
    assert missed
    late = [line["at"] for line in lines if "at" in line and line["late"] > LATE]
    assert max(late, default=went_on) - went_on < 5.0
    assert lines[-1]["late"] < LATE


async def stand_still(processes: list[Process]) -> float:
    """When they went on."""
    for each in processes:
        each.send_signal(signal.SIGSTOP)
    await asyncio.sleep(STOPPED)
    went_on = time.monotonic()
    for each in processes:
        each.send_signal(signal.SIGCONT)
    return went_on


async def test_stopped_clients_go_on_at_the_present_or_miss_nothing(
    start_server: StartServer, ca_file: Path, tmp_path: Path
) -> None:
    server = await start_server()
    source = Wide()
    url = session_url(f"https://localhost:{server.port}", server.host.open(source).id)
    whole = f"{url}?mode=gapless"
    live, gapless = [], []
    for door in DOORS:
        live.append(await process("-c", CLIENT, url, ca_file, door))
        play = ("play", whole, "--transport", door, "--ca", ca_file, "-o", tmp_path / f"{door}.raw")
        gapless.append(await process("-m", "tenuto.cli", *play))
    said = [asyncio.create_task(each.communicate()) for each in (*live, *gapless)]
    others = [asyncio.create_task(neighbour(whole, door, ca_file)) for door in DOORS]
    try:
        await until_attached(server, 6)
        source.gate.set()
        await asyncio.sleep(BEFORE)
        went_on = await stand_still([*live, *gapless])
        async with asyncio.timeout(20):
            told = await asyncio.gather(*said)
            heard = await asyncio.gather(*others)
    finally:
        for each in (*live, *gapless):
            if each.returncode is None:
                each.kill()
    assert [each.returncode for each in (*live, *gapless)] == [0] * 4, told
    for out, _ in told[: len(live)]:
        judge_live(out, went_on)
    for other in heard:
        assert [read_clock(frame.payload)[0] for frame in other.frames] == list(range(FRAMES))
        assert max(late - early for early, late in pairwise(other.times)) < LATE
        for door in DOORS:
            assert (tmp_path / f"{door}.raw").read_bytes() == other.pcm
