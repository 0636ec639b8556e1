"""A session that changes its format in mid-stream, and one that cannot wait, over both doors."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import numpy as np
import pytest

from quicserver.app import Server
from tenuto.client import (
    Event,
    FormatAnnounced,
    GapSeen,
    Stream,
    Transport,
    Trust,
    open_stream,
    session_url,
)
from tenuto.media import AudioFormat
from tenuto.sources import Mark
from tenuto.telemetry.events import Event as ServerEvent
from tenuto.telemetry.events import PeerFaulted
from tests.conftest import StartServer
from tests.support.fetch import fetch_soon

RATES = [AudioFormat(16000, 1), AudioFormat(48000, 2), AudioFormat(8000, 1), AudioFormat(16000, 1)]
TRANSPORTS: tuple[Transport, ...] = ("quic", "tcp")


def noise(audio: AudioFormat, seconds: float, seed: int) -> bytes:
    count = round(audio.rate * seconds) * audio.channels
    rng = np.random.default_rng(seed)
    return rng.integers(-32768, 32767, count, dtype="<i2").tobytes()


# Lengths that end within a frame.
PARTS = [(audio, noise(audio, 0.517 + n / 7, n)) for n, audio in enumerate(RATES)]


class Changing:
    """Four pieces, each of another format than the one before."""

    kind = "changing"
    format = RATES[0]
    pausable = True
    patience = 10.0

    async def stream(self) -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        for audio, samples in PARTS:
            yield audio
            for start in range(0, len(samples), 1697):
                yield samples[start : start + 1697]
                await asyncio.sleep(0)


class Flood:
    """A live source: 60 frames, and 2,000 more in a moment when it is told to."""

    kind = "flood"
    format = AudioFormat()
    pausable = False
    patience = 10.0

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def stream(self) -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        for _ in range(60):
            yield bytes(640)
        await self.gate.wait()
        for _ in range(2000):
            yield bytes(640)


async def collect(stream: Stream) -> list[tuple[AudioFormat, bytes]]:
    """What came, one entry for each run of one format."""
    parts: list[tuple[AudioFormat, bytearray]] = []
    async for frame in stream:
        if not parts or parts[-1][0] != stream.format:
            parts.append((stream.format, bytearray()))
        parts[-1][1].extend(frame.payload)
    return [(audio, bytes(samples)) for audio, samples in parts]


def origin(server: Server) -> str:
    return f"https://localhost:{server.port}"


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("lead", ["max", 0.5])
async def test_every_sample_arrives_in_its_own_format(
    transport: Transport, lead: float, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    session = server.host.open(Changing())
    url = session_url(origin(server), session.id)
    events: list[Event] = []
    async with open_stream(
        url,
        transport=transport,
        params={"lead": lead},
        trust=Trust(cafile=ca_file),
        on_event=events.append,
    ) as stream:
        assert stream.format == RATES[0]
        assert await collect(stream) == PARTS
        assert stream.complete
        assert stream.gaps == 0
        assert stream.samples == session.samples
    announced = [event for event in events if isinstance(event, FormatAnnounced)]
    assert [event.audio for event in announced] == RATES
    assert [event.epoch for event in announced] == [0] * 4


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_resume_finds_the_format_of_its_first_frame(
    transport: Transport, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    session = server.host.open(Changing())
    url = session_url(origin(server), session.id)
    trust = Trust(cafile=ca_file)
    whole = [(audio, samples) for audio, samples in PARTS]
    frames: list[tuple[AudioFormat, bytes]] = []
    async with open_stream(url, transport=transport, params={"lead": "max"}, trust=trust) as first:
        async for frame in first:
            frames.append((first.format, frame.payload))
    for start in range(0, len(frames), 7):
        params: dict[str, str | int] = {"lead": "max", "from": start}
        async with open_stream(url, transport=transport, params=params, trust=trust) as stream:
            assert stream.format == frames[start][0]
            again = [(stream.format, frame.payload) async for frame in stream]
        assert again == frames[start:]
        assert stream.complete
    assert b"".join(payload for _, payload in frames) == b"".join(part for _, part in whole)


@pytest.mark.parametrize("kind", ["wav", "l16"])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_plain_player_hears_all_in_the_first_format(
    transport: Transport, kind: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    session = server.host.open(Changing())
    answer = await fetch_soon(
        transport,
        server.port,
        f"/v1/sessions/{session.id}/audio",
        ca=ca_file,
        headers=(f"accept: audio/{kind}",),
    )
    assert (answer.status, answer.result) == (200, 0)
    body = answer.body[44:] if kind == "wav" else swapped(answer.body)
    lengths = [
        2 * round(len(samples) / audio.bytes_per_sample * 16000 / audio.rate)
        for audio, samples in PARTS
    ]
    assert len(body) == sum(lengths)
    assert answer.body.count(b"RIFF") == (1 if kind == "wav" else 0)
    # What needed no conversion is as it was.
    assert body[: lengths[0]] == PARTS[0][1]
    assert body[-lengths[3] :] == PARTS[3][1]


@pytest.mark.parametrize("kind", ["wav", "l16"])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_without_a_resampler_a_plain_player_hears_what_it_can_and_is_cut(
    transport: Transport,
    kind: str,
    start_server: StartServer,
    ca_file: Path,
    events: list[ServerEvent],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "soxr", None)
    server = await start_server()
    session = server.host.open(Changing())
    answer = await fetch_soon(
        transport,
        server.port,
        f"/v1/sessions/{session.id}/audio",
        ca=ca_file,
        headers=(f"accept: audio/{kind}",),
    )
    assert answer.status == 200
    assert answer.result != 0
    body = answer.body[44:] if kind == "wav" else swapped(answer.body)
    assert body == PARTS[0][1]
    assert not [event for event in events if isinstance(event, PeerFaulted)]


def swapped(data: bytes) -> bytes:
    return np.frombuffer(data, ">i2").astype("<i2").tobytes()


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_live_listener_begins_now_and_hears_of_what_it_missed(
    transport: Transport, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    source = Flood()
    session = server.host.open(source)
    while session.end < 60:  # nobody tells
        await asyncio.sleep(0.02)
    url = session_url(origin(server), session.id)
    events: list[Event] = []
    async with open_stream(
        url,
        transport=transport,
        trust=Trust(cafile=ca_file),
        on_event=events.append,
    ) as stream:
        sequences = [(await anext(stream)).sequence]
        source.gate.set()
        sequences += [frame.sequence async for frame in stream]
        assert stream.complete
    assert sequences[0] == 50
    assert sequences[-1] == 2059
    gaps = [event for event in events if isinstance(event, GapSeen)]
    assert all(gap.announced for gap in gaps)
    missed = sum(gap.count for gap in gaps)
    assert missed == stream.gaps == session.dropped == server.host.tally.frames_dropped > 1000
    assert len(sequences) + missed == 2060 - 50
