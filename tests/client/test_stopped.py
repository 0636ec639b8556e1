"""A laptop's lid, or Ctrl-Z: the whole process stands still for seconds, and then goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tenuto.client import Trust, open_stream
from tenuto.sources.counting import numbered_run
from tests.conftest import StartServer
from tests.support.stoppable import CLOCK, NUMBERED

ROOT = Path(__file__).parents[2]
STOPPED = 2.5
PRESENT = 0.7
"""Seconds behind: a lead of 0.2 s, and the 0.5 s beyond it that mode=live allows."""

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no SIGSTOP here")


async def beside(port: int, ca: Path, came: list[float]) -> None:
    """Another listener of the same server, until it is cancelled; when its frames came."""
    url = f"https://localhost:{port}/v1/speak?source=clock"
    async with open_stream(url, transport="quic", trust=Trust(cafile=ca)) as stream:
        async for _ in stream:
            came.append(time.monotonic())


async def stop_for_a_while(client: Process) -> float:
    """Once it plays; when it went on."""
    assert client.stdout is not None
    assert await client.stdout.readline() == b"playing\n"
    os.kill(client.pid, signal.SIGSTOP)
    await asyncio.sleep(STOPPED)
    os.kill(client.pid, signal.SIGCONT)
    return time.monotonic()


async def test_who_stood_still_is_at_the_present_or_misses_nothing(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    arguments = ("-m", "tests.support.stoppable", str(server.port), str(ca_file))
    client = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=ROOT, stdout=PIPE, limit=1 << 22
    )
    came: list[float] = []
    other = asyncio.create_task(beside(server.port, ca_file, came))
    try:
        async with asyncio.timeout(25):
            went_on = await stop_for_a_while(client)
            assert client.stdout is not None
            findings = json.loads(await client.stdout.readline())
            assert await client.wait() == 0
    finally:
        other.cancel()
        if client.returncode is None:
            client.kill()
            await client.wait()
    for found in findings:
        (check_live if found["mode"] == "live" else check_gapless)(found, went_on)
    # While it stood still and after it: nobody else has noticed.
    meanwhile = [at for at in came if at >= went_on - STOPPED]
    assert meanwhile[-1] > went_on + 0.8
    assert max(b - a for a, b in pairwise(meanwhile)) <= 0.2


def check_gapless(found: dict[str, Any], _: float) -> None:
    assert found["sequences"] == list(range(NUMBERED)), found["transport"]
    assert found["digest"] == sha256(numbered_run(0, NUMBERED * 640, 640)).hexdigest()
    assert found["gaps"] == 0


def check_live(found: dict[str, Any], went_on: float) -> None:
    """What came and what was told as a gap is everything, once; and it is the present again."""
    came = found["came"]
    missing = [
        number for first, count, _ in found["gaps"] for number in range(first, first + count)
    ]
    sequences = [sequence for sequence, _, _ in came]
    assert sequences == sorted(sequences)
    assert sorted(sequences + missing) == list(range(CLOCK)), found["gaps"]
    assert all(announced for _, _, announced in found["gaps"])
    if found["transport"] == "quic":
        # Over TCP the kernel may have taken all of it meanwhile.
        assert missing
    assert any(went_on < at <= went_on + 5.0 and late < PRESENT for _, at, late in came)
    assert median(late for _, _, late in came[-20:]) < PRESENT
