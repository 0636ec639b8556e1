"""A QUIC leg that only receives, pinged as the client's watchdog does, over a lab's relay."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from tenuto.client.exchange import Request
from tenuto.client.quic import QuicLeg, connect_quic
from tenuto.client.target import Address
from tenuto.client.trust import Trust
from tenuto.media import Frame
from tenuto.wire import MEDIA_TYPE, RecordDecoder

__all__ = ["Watched", "listen"]

SILENCE = 0.1


class Watched:
    """What came, and when."""

    def __init__(self, leg: QuicLeg) -> None:
        self.leg = leg
        self.sequences: list[int] = []
        self.times: list[float] = []
        self.pings = 0
        self._loop = asyncio.get_running_loop()
        self._came_at = self._loop.time()

    @property
    def longest_gap(self) -> float:
        """Between two arrivals of frames, once the burst of the lead is over."""
        paced = self.times[len(self.times) // 10 :]
        return max(b - a for a, b in pairwise(paced))

    @property
    def lost(self) -> int:
        """Frames between the first and the last that never came, or came twice."""
        return abs(self.sequences[-1] - self.sequences[0] + 1 - len(set(self.sequences)))

    async def read(self) -> None:
        """To the end, pinging each 100 ms of silence."""
        decoder = RecordDecoder()
        watching = asyncio.create_task(self._watch())
        try:
            while data := await self.leg.read():
                self._came_at = self._loop.time()
                for record in decoder.feed(data):
                    if isinstance(record, Frame):
                        self.sequences.append(record.sequence)
                        self.times.append(self._came_at)
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        pinged_at = self._came_at
        while True:
            due = max(self._came_at, pinged_at) + SILENCE
            await asyncio.sleep(max(0.0, due - self._loop.time()))
            if self._loop.time() >= max(self._came_at, pinged_at) + SILENCE:
                pinged_at = self._loop.time()
                self.pings += 1
                self.leg.ping()


async def listen(
    address: tuple[str, int],
    ca: Path,
    path: str,
    meanwhile: Callable[[Watched], object] | None = None,
) -> Watched:
    """Play a whole answer; `meanwhile` starts what is to happen to it."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    leg = await connect_quic([Address(family, address)], "localhost", Trust(ca), deadline=8.0)
    try:
        accepts = (("accept", f"{MEDIA_TYPE}; v=1"),)
        response = await leg.request(Request("GET", "localhost", path, accepts))
        assert response.status == 200, response
        watched = Watched(leg)
        if meanwhile is not None:
            meanwhile(watched)
        await watched.read()
    finally:
        await leg.aclose()
    return watched
