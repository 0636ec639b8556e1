"""kill -9 under a file and a tone: a new process goes on with them, byte for byte."""

from __future__ import annotations

import asyncio
import os
import signal
import wave
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from bench.process import ServerProcess
from tenuto.client import Event, Restarted, RetryPolicy, Transport, Trust, open_stream
from tenuto.sources import ToneSource
from tenuto.tls import DevCertificates
from tests.support.ports import free_port

POLICY = RetryPolicy(base=0.05, cap=0.5, patience=20)
FRAMES = 140
KILLED_AT = 20
SECONDS = FRAMES / 50


@dataclass
class Listener:
    """One stream, and all that came of it."""

    params: dict[str, str | int | float]
    transport: Transport
    sequences: list[int] = field(default_factory=list)
    heard: bytearray = field(default_factory=bytearray)
    events: list[Event] = field(default_factory=list)
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, port: int, ca: Path) -> None:
        async with open_stream(
            f"https://localhost:{port}/v1/speak",
            params={**self.params, "lead": 0.5},
            transport=self.transport,
            trust=Trust(cafile=ca),
            resume=POLICY,
            on_event=self.events.append,
        ) as stream:
            async for frame in stream:
                self.sequences.append(frame.sequence)
                self.heard += frame.payload
                if frame.sequence == KILLED_AT:
                    self.ready.set()
        assert stream.gaps == 0

    def check(self, expected: bytes) -> None:
        assert self.sequences == list(range(FRAMES))
        assert bytes(self.heard) == expected
        (restarted,) = [event for event in self.events if isinstance(event, Restarted)]
        assert restarted.skip == restarted.sequence > KILLED_AT


def recording(folder: Path) -> bytes:
    """Noise in a file, no frame of it like another; its samples."""
    samples = Random(9).randbytes(FRAMES * 640)
    folder.mkdir()
    with wave.open(str(folder / "noise.wav"), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", "not compressed"))
        file.writeframes(samples)
    return samples


async def tone() -> bytes:
    # 441.3 Hz has no whole number of periods in any run of frames here.
    source = ToneSource(frequency=441.3, seconds=SECONDS)
    return b"".join([run async for run in source.stream()])


async def test_after_kill_9_files_and_tones_go_on_byte_for_byte(tmp_path: Path) -> None:
    DevCertificates(tmp_path).ensure(datetime.now(UTC))
    samples, sine = recording(tmp_path / "media"), await tone()
    assert len(samples) == len(sine)
    options = ("--port", str(free_port()), "--media", str(tmp_path / "media"))
    servers = [await asyncio.to_thread(ServerProcess, tmp_path, *options)]
    transports: tuple[Transport, ...] = ("quic", "tcp")
    files = [Listener({"file": "noise.wav"}, transport) for transport in transports]
    wanted: dict[str, str | int | float] = {
        "source": "tone", "frequency": 441.3, "seconds": SECONDS
    }  # fmt: skip
    tones = [Listener(wanted, transport) for transport in transports]
    try:
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            for each in (*files, *tones):
                group.create_task(each.listen(servers[0].port, servers[0].ca))
            for each in (*files, *tones):
                await each.ready.wait()
            os.kill(servers[0].process.pid, signal.SIGKILL)
            await asyncio.to_thread(servers[0].wait)
            servers.append(await asyncio.to_thread(ServerProcess, tmp_path, *options))
    finally:
        for server in servers:
            await asyncio.to_thread(server.stop)
    for each in files:
        each.check(samples)
    for each in tones:
        each.check(sine)
