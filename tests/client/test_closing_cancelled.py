"""Cancelled more than once, closed in the middle of things, used afterwards: nothing is left."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tenuto.client import ConnectError, PathStore, Transport, Trust, open_stream
from tenuto.wire import End, Format
from tests.client.authority import Authority, Pair
from tests.client.peer import AUDIO, Asked, Out, frames, records, serving

ROOT = Path(__file__).parents[2]

SEED = 31

COUNT = 200

# A process of its own: there every warning is an error, and what nobody retrieved is told.
SCENE = """
import asyncio, contextlib, gc, json, os, random, sys
from pathlib import Path
from tenuto.client import PathStore, Trust, open_stream
from tenuto.errors import TenutoError
url, ca, transport, seed = sys.argv[1:]
draw = random.Random(int(seed))
other = {"quic": "tcp", "tcp": "quic"}[transport]
told, beside = [], set()
def sockets():
    links = (Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd"))
    return sum(os.path.islink(link) and os.readlink(link).startswith("socket:") for link in links)
async def aside(call):
    with contextlib.suppress(TenutoError):
        await call
async def listen():
    trust = Trust(cafile=Path(ca))
    async with open_stream(url, trust=trust, memory=PathStore(), transport=transport) as stream:
        calls = [lambda: stream.move(other), stream.pause, stream.resume, stream.flush]
        for call in draw.sample(calls, draw.randrange(3)):
            beside.add(asyncio.create_task(aside(call())))
        async for frame in stream:
            stream.heard(frame.sequence)
            if draw.random() < 0.02:
                stream.rebind()
            if draw.random() < 0.02:
                stream._flow.leg.abort()
async def once():
    task = asyncio.create_task(listen())
    await asyncio.sleep(draw.uniform(0, 0.2))
    for _ in range(draw.randrange(1, 6)):
        task.cancel()
        await asyncio.sleep(draw.choice([0, 0, 0, 0.0005, 0.002]))
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
async def main():
    loop = asyncio.get_running_loop()
    loop.slow_callback_duration = 60  # that the machine is busy is no news
    loop.set_exception_handler(lambda _, context: told.append(str(context)))
    await asyncio.sleep(0.1)
    before = sockets() if sys.platform == "linux" else 0
    for _ in range(10):
        await asyncio.gather(*(once() for _ in range(10)))
    await asyncio.sleep(1.0)
    gc.collect()
    me = asyncio.current_task()
    leaked = [repr(task) for task in asyncio.all_tasks() if task is not me]
    after = sockets() if sys.platform == "linux" else 0
    print(json.dumps([told, leaked, after - before]))
asyncio.run(main())
"""


async def slowly(asked: Asked, out: Out) -> None:
    """From where the listener was, and whatever a command says."""
    if "control" in asked.path:
        await out.head(200, "application/json")
        await out.send(b'{"expires_in": 60}')
        await out.end()
        return
    start = int(asked.path.partition("from=")[2].partition("&")[0] or 0)
    await out.head(tenuto_session="s-1")
    await out.send(records(Format(AUDIO, start)))
    for frame in frames(COUNT - start, start):
        await out.send(records(frame))
        await asyncio.sleep(0.002)
    await out.send(records(End(COUNT, COUNT * AUDIO.samples_per_frame)))
    await out.end()


async def test_cancelled_several_times_a_stream_leaves_nothing(
    transport: Transport, pair: Pair, authority: Authority
) -> None:
    """Whatever it was about: reading, moving, commands, another network, a lost leg."""
    async with serving(pair, slowly) as peer:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", "-X", "dev", "-c", SCENE),
            *(peer.url(), str(authority.ca), transport, str(SEED)),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), 60)
    assert err.decode() == "", f"seed {SEED}"
    told, leaked, sockets = json.loads(out)
    assert (told, leaked, sockets) == ([], [], 0), f"seed {SEED}"


async def test_a_stream_that_is_closed_says_and_does_nothing_more(
    transport: Transport, pair: Pair, trust: Trust
) -> None:
    async with serving(pair, slowly) as peer:
        before = asyncio.all_tasks()
        async with open_stream(
            peer.url(), trust=trust, memory=PathStore(), transport=transport
        ) as stream:
            await anext(stream)
        asked = len(peer.asked)
        stream.heard(3)
        stream.rebind()
        await stream.move("tcp")
        for command in (stream.pause, stream.resume, stream.flush):
            with pytest.raises(ConnectError, match="the stream is closed"):
                await command()
        async with asyncio.timeout(5):
            while tasks_of_the_client() - before:
                await asyncio.sleep(0.01)
        assert len(peer.asked) == asked


def tasks_of_the_client() -> set[asyncio.Task[object]]:
    return {task for task in asyncio.all_tasks() if "/tenuto/client/" in repr(task)}


async def silent(asked: Asked, out: Out) -> None:
    """To the second that asks nothing is said."""
    if "from=" in asked.path:
        await asyncio.sleep(3600)
    await slowly(asked, out)


async def test_a_move_ends_with_the_stream(pair: Pair, trust: Trust) -> None:
    async with serving(pair, silent) as peer:
        async with open_stream(
            peer.url(), trust=trust, memory=PathStore(), transport="quic"
        ) as stream:
            await anext(stream)
            moving = asyncio.create_task(stream.move("tcp"))
            while len(peer.asked) < 2:
                await asyncio.sleep(0.01)
        with pytest.raises(ConnectError, match="the stream is closed"):
            await asyncio.wait_for(moving, 1)
