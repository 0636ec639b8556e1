"""Two hundred listeners lose their server in the same instant: all come back, and not at once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from bench.process import ServerProcess
from tenuto.client import Event, Resumed, Retrying, RetryPolicy, Trust, open_stream
from tenuto.tls import DevCertificates
from tests.support.ports import free_port

LISTENERS = 200
RATE = 80
"""Listeners a second that are let in, and as many at once. The crowd is told up to 3.8 s."""

# Five frames a second for each, so that two cores carry them with all their real sockets.
SPEAK = "/v1/speak?source=counting&frames=1000000&run=640&delay=0.2&lead=0.2"


class Crowd:
    """All of them, in this process."""

    def __init__(self, port: int, ca: Path) -> None:
        self.playing = self.back = 0
        self.attempts: list[float] = []
        """When each attempt to come back begins, as it was announced."""
        self._url = f"https://localhost:{port}{SPEAK}"
        self._trust = Trust(cafile=ca)
        self._loop = asyncio.get_running_loop()

    async def listen(self) -> None:
        async with open_stream(
            self._url,
            transport="tcp",
            trust=self._trust,
            resume=RetryPolicy(patience=30.0),
            watch=None,
            follow_network=False,
            on_event=self._note,
        ) as stream:
            await anext(stream)
            self.playing += 1
            async for _ in stream:
                pass

    def _note(self, event: Event) -> None:
        if isinstance(event, Retrying):
            self.attempts.append(self._loop.time() + event.wait)
        elif isinstance(event, Resumed):
            self.back += 1

    async def all_play(self) -> None:
        while self.playing < LISTENERS:
            await asyncio.sleep(0.02)

    async def all_are_back(self) -> None:
        while self.back < LISTENERS:
            await asyncio.sleep(0.02)


async def test_two_hundred_come_back_after_kill_9_and_never_a_tenth_at_once(
    tmp_path: Path,
) -> None:
    DevCertificates(tmp_path).ensure(datetime.now(UTC))
    options = ("--port", str(free_port()), "--attach-rate", str(RATE))
    servers = [await asyncio.to_thread(ServerProcess, tmp_path, *options)]
    crowd = Crowd(servers[0].port, servers[0].ca)
    listening = [asyncio.create_task(crowd.listen()) for _ in range(LISTENERS)]
    try:
        async with asyncio.timeout(40):
            await crowd.all_play()
            killed = asyncio.get_running_loop().time()
            os.kill(servers[0].process.pid, signal.SIGKILL)
            await asyncio.to_thread(servers[0].wait)
            servers.append(await asyncio.to_thread(ServerProcess, tmp_path, *options))
            await crowd.all_are_back()
        assert servers[1].metric("sessions") == LISTENERS
    finally:
        for task in listening:
            task.cancel()
        ends = await asyncio.gather(*listening, return_exceptions=True)
        for server in servers:
            await asyncio.to_thread(server.process.kill)
            await asyncio.to_thread(server.wait)
    assert all(isinstance(end, asyncio.CancelledError) for end in ends)
    # The opening had its waits too.
    attempts = [at - killed for at in crowd.attempts if at >= killed]
    assert len(attempts) >= LISTENERS
    bins = Counter(int(at / 0.1) for at in attempts)
    busiest = max(count for number, count in bins.items() if number >= 10)
    assert busiest <= len(attempts) / 10, sorted(bins.items())
