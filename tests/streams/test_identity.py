"""A minute of noise, unpaced, through both doors: byte-identical by three clients."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import subprocess
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench.process import ServerProcess
from tenuto.client import TransportChoice, Trust, open_stream
from tests.support.fetch import fetch, fetch_soon

SECONDS = 60
FORMATS = [(16000, 1), (16000, 2), (48000, 1), (48000, 2)]


def noise(rate: int, channels: int, samples: int) -> bytes:
    """Seeded white noise: any byte lost, doubled or moved shows."""
    rng = np.random.default_rng(rate + channels)
    return rng.integers(-32768, 32767, samples * channels, dtype=np.int16).tobytes()


def write_wav(path: Path, rate: int, channels: int, samples: bytes) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples)


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("media")
    for rate, channels in FORMATS:
        samples = noise(rate, channels, rate * SECONDS)
        write_wav(folder / f"{rate}-{channels}.wav", rate, channels, samples)
    return folder


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(("rate", "channels"), FORMATS)
async def test_a_minute_arrives_byte_identical(
    rate: int,
    channels: int,
    media: Path,
    server_process: Callable[..., ServerProcess],
    tmp_path: Path,
) -> None:
    server = server_process("--media", str(media))
    expected = digest(noise(rate, channels, rate * SECONDS))
    path = f"/v1/speak?file={rate}-{channels}.wav&lead=max"
    transports: tuple[TransportChoice, ...] = ("quic", "tcp")
    for transport in transports:
        received = hashlib.sha256()
        frames = 0
        trust = Trust(cafile=server.ca)
        async with open_stream(server.url + path, transport=transport, trust=trust) as stream:
            assert stream.transport == transport
            async for frame in stream:
                received.update(frame.payload)
                frames += 1
        assert frames == SECONDS * 50
        assert received.hexdigest() == expected, transport
    # Clients that we did not write: libcurl over HTTP/3, the curl command over TCP.
    quic = await fetch_soon("quic", server.port, path, ca=server.ca, timeout=60)
    assert (quic.status, quic.result, quic.version) == (200, 0, 30)
    assert digest(quic.body[44:]) == expected
    output = tmp_path / "curl.wav"
    await asyncio.to_thread(curl_over_tcp, server, path, output)
    assert digest(output.read_bytes()[44:]) == expected
    check_players(output, rate, channels)


def curl_over_tcp(server: ServerProcess, path: str, output: Path) -> None:
    """The curl command, or its library where there is no such command."""
    curl = shutil.which("curl")
    if curl is None:
        output.write_bytes(fetch("tcp", server.port, path, ca=server.ca, timeout=60).body)
        return
    command = [curl, "-sS", "--http1.1", "--cacert", str(server.ca), "-o", str(output)]
    subprocess.run([*command, server.url + path], check=True, timeout=60)


def check_players(path: Path, rate: int, channels: int) -> None:
    """Python's own `wave` and ffprobe open the stream's WAV."""
    with wave.open(str(path), "rb") as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (
            rate,
            channels,
            2,
        )
        assert len(file.readframes(rate * (SECONDS + 1))) == rate * SECONDS * channels * 2
    ffprobe = shutil.which("ffprobe")
    if ffprobe is None:
        pytest.skip("ffprobe (package ffmpeg) is not installed on this machine")
    command = [ffprobe, "-v", "error", "-show_streams", "-of", "json", str(path)]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert found["streams"][0]["codec_name"] == "pcm_s16le"
    assert int(found["streams"][0]["sample_rate"]) == rate
    assert found["streams"][0]["channels"] == channels


@pytest.mark.parametrize("samples", [0, 1, 2, 319, 320, 321, 639, 641, 160_208])
async def test_every_length_is_kept_to_the_sample(
    samples: int, server_process: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    data = noise(16000, 1, samples)
    write_wav(tmp_path / "short.wav", 16000, 1, data)
    server = server_process("--media", str(tmp_path))
    url = server.url + "/v1/speak?file=short.wav&lead=max"
    transports: tuple[TransportChoice, ...] = ("quic", "tcp")
    for transport in transports:
        async with open_stream(url, transport=transport, trust=Trust(cafile=server.ca)) as stream:
            received = [frame async for frame in stream]
        assert b"".join(frame.payload for frame in received) == data
        assert sum(frame.samples for frame in received) == samples
        plain = await fetch_soon(transport, server.port, "/v1/speak?file=short.wav", ca=server.ca)
        assert plain.body[44:] == data
        assert plain.result == 0


async def test_a_stray_byte_at_the_end_is_dropped(
    server_process: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    data = noise(16000, 2, 1000)
    path = tmp_path / "odd.wav"
    write_wav(path, 16000, 2, data)
    whole = bytearray(path.read_bytes())
    whole += b"\x7f"
    whole[40:44] = (len(data) + 1).to_bytes(4, "little")
    path.write_bytes(whole)
    server = server_process("--media", str(tmp_path))
    for door in ("quic", "tcp"):
        answer = await fetch_soon(door, server.port, "/v1/speak?file=odd.wav", ca=server.ca)
        assert (answer.status, answer.result) == (200, 0)
        assert answer.body[44:] == data
