"""A disk that hangs, seen by a real server: neither other listeners nor SIGTERM wait for it."""

from __future__ import annotations

import asyncio
import fcntl
import io
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import soundfile

from bench.process import ServerProcess
from tenuto.client import Trust, open_stream
from tests.support.fetch import Answer, fetch_soon
from tests.support.wavs import chunk, encode, fmt, riff, wav
from tests.support.wavs import signal as sound

# Files of this rate open and are never read to the end: a share that went away in between.
HANGING_RATE = 8000

HANGS = f"""
import time
from tenuto.sources.wav import WavSamples
read = WavSamples.read
def hang(self, samples):
    if self._data.rate == {HANGING_RATE}:
        time.sleep(60)
    return read(self, samples)
WavSamples.read = hang
"""


@pytest.fixture
def media(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """good.wav; blocked.wav, which does not open; hanging.wav, which is not read; hole.*."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "sitecustomize.py").write_text(HANGS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "code"))
    folder = tmp_path / "media"
    folder.mkdir()
    samples = encode("s16", sound(48000, 2, seconds=20))
    (folder / "good.wav").write_bytes(riff(fmt("s16", 48000, 2), chunk(b"data", samples)))
    (folder / "hanging.wav").write_bytes(wav("s16", HANGING_RATE))
    (folder / "blocked.wav").write_bytes(wav())
    for name, format, subtype in (("hole.ogg", "OGG", "VORBIS"), ("hole.flac", "FLAC", "PCM_16")):
        buffer = io.BytesIO()
        noise = np.random.default_rng(7).normal(0, 0.1, 48000)
        soundfile.write(buffer, noise, 24000, subtype, format=format)
        with (folder / name).open("wb") as file:
            file.write(buffer.getvalue()[:20_000])
            file.truncate(4 << 30)  # As a download leaves a file that it laid out beforehand.
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # It asks to give the lease back.
    with (folder / "blocked.wav").open("r+b") as leased:
        fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield folder
        fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    signal.signal(signal.SIGIO, before)


async def longest_gap(server: ServerProcess) -> float:
    """Play the good file until the server ends it; seconds between two frames at most."""
    url = f"{server.url}/v1/speak?file=good.wav&lead=0.2"
    gap, last = 0.0, None
    try:
        async with open_stream(
            url, transport="tcp", resume=None, trust=Trust(cafile=server.ca)
        ) as stream:
            async for _ in stream:
                now = time.monotonic()
                gap, last = max(gap, now - (last or now)), now
    except Exception:  # noqa: BLE001 - the server stops
        return gap
    return gap


def ask(server: ServerProcess, name: str, timeout: float) -> asyncio.Task[Answer]:
    path = f"/v1/speak?file={name}&lead=max"
    return asyncio.create_task(fetch_soon("tcp", server.port, path, ca=server.ca, timeout=timeout))


async def test_files_that_hang_hold_up_neither_listeners_nor_the_end(
    media: Path, server_process: Callable[..., ServerProcess]
) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(40))
    server = server_process("--media", str(media), "--grace", "1")
    playing = asyncio.create_task(longest_gap(server))
    await asyncio.sleep(0.5)
    hung = [ask(server, "hanging.wav", 8) for _ in range(12)]
    blocked = [ask(server, "blocked.wav", 8) for _ in range(12)]
    holes = [ask(server, name, 8) for name in ("hole.ogg", "hole.flac") * 4]
    for answer in await asyncio.gather(*blocked):
        assert answer.json["code"] == "source-failed"
        assert "'blocked.wav' did not open within 5 s" in answer.json["detail"]
    refused, broken = await asyncio.gather(holes[0], holes[1])
    assert refused.status == 415
    assert "16 MiB in it that hold no sound" in refused.json["detail"]
    assert broken.result == 18
    assert await asyncio.to_thread(server.metric, "files_timed_out_total") == 12
    assert await asyncio.to_thread(server.metric, "files_busy") >= 24
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(server.wait) == 0
    assert time.monotonic() - began < 2.5
    assert server.log[-1]["event"] == "ServerStopped"
    assert not [line for line in server.log if line.get("event") in ("SourceStuck", "PeerFaulted")]
    assert await playing < 1.0
    await asyncio.gather(*hung, *holes)


async def test_the_end_does_not_wait_for_a_file_that_is_being_opened(
    media: Path, server_process: Callable[..., ServerProcess]
) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(40))
    server = server_process("--media", str(media), "--grace", "0.5")
    asked = [ask(server, name, 5) for name in ("blocked.wav", "hole.ogg", "hanging.wav") * 2]
    await asyncio.sleep(0.3)
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(server.wait) == 0
    assert time.monotonic() - began < 2.0
    await asyncio.gather(*asked)


STAT_HANGS = """
import os, time
stat = os.stat
def hang(path, *rest, **more):
    if str(path).endswith("hanging/cert.pem") and os.access(f"{path}.hangs", os.F_OK):
        time.sleep(60)
    return stat(path, *rest, **more)
os.stat = hang
"""


async def test_a_certificate_on_a_disk_that_hangs_holds_up_nobody(
    tmp_path: Path,
    ca_file: Path,
    server_process: Callable[..., ServerProcess],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "sitecustomize.py").write_text(STAT_HANGS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    folder = tmp_path / "hanging"
    folder.mkdir()
    for name in ("cert.pem", "key.pem"):
        shutil.copy(ca_file.parent / name, folder)
    pair = ["--cert", str(folder / "cert.pem"), "--key", str(folder / "key.pem")]
    server = server_process(*pair, "--grace", "0.2")
    (folder / "cert.pem.hangs").touch()
    for _ in range(7):
        await asyncio.to_thread(server.get, "/healthz", timeout=2.0)
        await asyncio.sleep(0.5)
    assert await asyncio.to_thread(server.metric, "files_busy") == 1
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(server.wait) == 0
    assert time.monotonic() - began < 2.0
