"""A stream on TCP tries QUIC again: what counts against QUIC, and what does not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from tenuto.client import Event, PathStore, Stayed, Trust, WatchPolicy, open_stream
from tenuto.client.target import Address
from tenuto.policy import CoolDown
from tenuto.wire import End, Format
from tests.client.authority import Pair
from tests.client.peer import AUDIO, Asked, Out, QuicOut, frames, problem, records, serving

COUNT = 150

SOON = WatchPolicy(interval=0.2)


def a_network(addresses: Sequence[Address]) -> str:
    return "a network"


class Memory(PathStore):
    def __init__(self) -> None:
        super().__init__(cool_down=0.2, identify=a_network)
        self.failures: list[int] = []

    def put(self, network: str, origin: str, cool_down: CoolDown) -> None:
        self.failures.append(cool_down.failures)
        super().put(network, origin, cool_down)


class Server:
    """Over TCP it speaks, for as long as it is to; over QUIC it does what it is told first."""

    def __init__(self, way_back: str) -> None:
        self.way_back = way_back
        self.lost = asyncio.Event()

    async def __call__(self, asked: Asked, out: Out) -> None:
        if isinstance(out, QuicOut) and self.way_back:
            way_back, self.way_back = self.way_back, ""
            if way_back == "refuses":
                await problem(503, code="at-capacity", detail="full")(asked, out)
                return
            self.lost.set()
            await asyncio.sleep(3600)
        start = int(asked.path.partition("from=")[2].partition("&")[0] or 0)
        await out.head(tenuto_session="s-1")
        await out.send(records(Format(AUDIO, start)))
        for frame in frames(COUNT - start, start):
            if self.lost.is_set() and start == 0:
                await out.cut()
                return
            await out.send(records(frame))
            await asyncio.sleep(0.01)
        await out.send(records(End(COUNT, COUNT * AUDIO.samples_per_frame)))
        await out.end()


@pytest.mark.parametrize(
    ("way_back", "most"),
    [("refuses", 1), ("is silent, and TCP is lost", 1), ("is not there", 2)],
)
async def test_quic_is_held_responsible_for_its_own_failures_alone(
    way_back: str, most: int, pair: Pair, trust: Trust
) -> None:
    """One of which it has already."""
    events: list[Event] = []
    memory = Memory()
    doors = ("tcp",) if way_back == "is not there" else ("quic", "tcp")
    async with serving(pair, Server(way_back), transports=doors) as peer:
        origin = f"https://localhost:{peer.port}"
        memory.put("a network", origin, CoolDown(1, time.time() + 0.2))
        async with open_stream(
            peer.url(), trust=trust, memory=memory, watch=SOON, on_event=events.append
        ) as stream:
            assert stream.transport == "tcp"
            assert [frame.sequence async for frame in stream] == list(range(COUNT))
    assert [event for event in events if isinstance(event, Stayed)]
    assert max(memory.failures[:2]) == most
