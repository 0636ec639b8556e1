"""Cancelled at a hundred moments, an opening leaves nothing: no task, socket or warning."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from pathlib import Path

import pytest

from tests.client.authority import Authority, Pair
from tests.client.peer import sentence, serving, whole
from tests.client.test_opening import black_hole

ROOT = Path(__file__).parents[2]

SEED = 25

# A process of its own: there every warning is an error, and what nobody retrieved is told.
SCENE = """
import asyncio, gc, json, os, random, sys
from pathlib import Path
from tenuto.client import PathStore, Trust, open_stream
url, ca, seed, count, longest = sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])
draw = random.Random(int(seed))
told, leaked, outcomes = [], [], {"cancelled": 0, "whole": 0}
def sockets():
    links = (Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd"))
    return sum(os.path.islink(link) and os.readlink(link).startswith("socket:") for link in links)
async def listen():
    async with open_stream(url, trust=Trust(cafile=Path(ca)), memory=PathStore()) as stream:
        async for _ in stream:
            pass
async def once(after):
    task = asyncio.create_task(listen())
    await asyncio.sleep(after)
    task.cancel()
    try:
        await task
        outcomes["whole"] += 1
    except asyncio.CancelledError:
        outcomes["cancelled"] += 1
async def main():
    loop = asyncio.get_running_loop()
    loop.slow_callback_duration = 60  # that the machine is busy is no news
    loop.set_exception_handler(lambda _, context: told.append(str(context)))
    await listen()
    await asyncio.sleep(0.1)
    gc.collect()
    before = sockets() if sys.platform == "linux" else 0
    moments = [draw.uniform(0, longest) for _ in range(int(count))]
    for at in range(0, len(moments), 10):
        await asyncio.gather(*map(once, moments[at : at + 10]))
    await asyncio.sleep(0.1)
    gc.collect()
    me = asyncio.current_task()
    leaked.extend(repr(task) for task in asyncio.all_tasks() if task is not me)
    after = sockets() if sys.platform == "linux" else 0
    print(json.dumps([outcomes, told, leaked, after - before]))
asyncio.run(main())
"""


@pytest.mark.parametrize("blocked", [False, True])
async def test_a_race_that_is_cancelled_leaves_nothing(
    pair: Pair, authority: Authority, blocked: bool
) -> None:
    """Over QUIC it takes some milliseconds, and behind a black hole 250 ms more."""
    transports = ("tcp",) if blocked else ("quic", "tcp")
    longest = 0.4 if blocked else 0.06
    async with serving(pair, whole(sentence(3)), transports=transports) as peer:
        with contextlib.ExitStack() as stack:
            if blocked:
                stack.enter_context(black_hole(socket.SOCK_DGRAM, peer.port))
            arguments = [peer.url(), str(authority.ca), str(SEED), "100", str(longest)]
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-W", "error", "-X", "dev", "-c", SCENE, *arguments),
                cwd=ROOT,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, err = await asyncio.wait_for(process.communicate(), 60)
    assert err.decode() == "", f"seed {SEED}"
    outcomes, told, leaked, sockets = json.loads(out)
    assert (told, leaked, sockets) == ([], [], 0), f"seed {SEED}"
    assert sum(outcomes.values()) == 100
    assert outcomes["cancelled"] > 20, outcomes
