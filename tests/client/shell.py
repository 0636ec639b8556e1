"""What tests of the command line share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager

from click.testing import Result

from tenuto.wire import Format
from tests.client.peer import AUDIO, Asked, Out, Peer, Script, frames, records

Served = Callable[[Script], AbstractContextManager[Peer]]

Run = Callable[..., Result]

PCM = b"".join(frame.payload for frame in frames(25))


async def endless(asked: Asked, out: Out) -> None:
    await out.head()
    await out.send(records(Format(AUDIO, 0)))
    for frame in frames(100_000):
        await out.send(records(frame))
        await asyncio.sleep(0.001)


def one_line(result: Result) -> str:
    line = result.stderr.strip()
    assert line.startswith("tenuto: "), result.output
    assert line.isprintable()
    return line
