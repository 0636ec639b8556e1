"""Every kind of file through a real server to a real client, against ffmpeg's decoding."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest

from tenuto.client import StreamCut, TransportChoice, Trust, open_stream
from tenuto.errors import ErrorCode, RequestError
from tests.conftest import StartServer
from tests.support.sounds import Sound, decode, make, sounds

ENOUGH = 100
BATCH = 20
MPEG_FRAME = 1152

Hear = Callable[[TransportChoice, dict[str, str]], Awaitable[bytes]]

pytest.importorskip("soundfile", reason="the extra audio is not installed")
pytest.importorskip("soxr", reason="the extra audio is not installed")


def compare(sound: Sound, heard: bytes, truth: bytes) -> str:
    """Empty where it is what it must be; else the difference."""
    if not sound.like:
        same = hashlib.sha256(heard).digest() == hashlib.sha256(truth).digest()
        return "" if same else f"{len(heard)} bytes are not the {len(truth)} expected"
    width = 2 * sound.channels
    if abs(len(heard) - len(truth)) > MPEG_FRAME * width:
        return f"{len(heard) // width} samples instead of {len(truth) // width}"
    length = min(len(heard), len(truth))
    pair = [np.frombuffer(each[:length], "<i2").astype(float) for each in (heard, truth)]
    likeness = float(np.corrcoef(pair[0], pair[1])[0, 1])
    return "" if likeness > sound.like else f"correlation {likeness:.4f}"


async def prepare(some: list[Sound], folder: Path) -> dict[str, bytes]:
    """Write the files; what must be heard of each."""
    await asyncio.gather(*(asyncio.to_thread(make, sound, folder) for sound in some))
    truths = {sound.name: sound.truth or b"" for sound in some}
    unknown = [sound for sound in some if sound.truth is None and not sound.refusal]
    batches = [unknown[first : first + BATCH] for first in range(0, len(unknown), BATCH)]
    for heard in await asyncio.gather(*(asyncio.to_thread(decode, b, folder) for b in batches)):
        truths |= heard
    return truths


async def check(sound: Sound, truth: bytes, hear: Hear, transports: list[TransportChoice]) -> str:
    """Empty where all is as it must be."""
    for transport in transports:
        try:
            heard = await hear(transport, {"file": sound.name, **sound.ask})
        except (RequestError, StreamCut) as error:
            expected = error.code is ErrorCode.UNSUPPORTED_AUDIO and error.remedy
            if not (sound.refusal and sound.refusal in str(error) and expected):
                return f"{transport}: {error}"
        else:
            if sound.refusal:
                return f"{transport}: was not refused"
            if problem := compare(sound, heard, truth):
                return f"{transport}: {problem}"
    return ""


@pytest.mark.timeout(90)
async def test_the_matrix(start_server: StartServer, ca_file: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    able = shutil.which("ffmpeg") is not None
    asked = [sound for sound in sounds() if able or not sound.needs_ffmpeg]
    truths = await prepare(asked, tmp_path)
    server = await start_server(media=tmp_path)
    url, trust = f"https://localhost:{server.port}/v1/speak", Trust(cafile=ca_file)

    async def hear(transport: TransportChoice, ask: dict[str, str]) -> bytes:
        async with open_stream(
            url, transport=transport, params=ask, lead="max", trust=trust
        ) as stream:
            return b"".join([frame.payload async for frame in stream])

    wrong = {}
    for number, sound in enumerate(asked):
        transports: list[TransportChoice] = ["tcp"] if number % 4 else ["tcp", "quic"]
        if problem := await check(sound, truths[sound.name], hear, transports):
            wrong[sound.name] = problem
    took = time.monotonic() - began
    kinds = dict(Counter(sound.judged_by for sound in asked))
    print(f"matrix: {len(asked)} files in {took:.1f} s, {kinds}, {len(wrong)} wrong")
    assert wrong == {}
    if not able:
        pytest.skip(f"ffmpeg is absent: only {len(asked)} of {len(sounds())} files were tried")
    assert len(asked) >= ENOUGH
