"""One port for both transports that tests may break, each for itself, on the way to a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.support.relay import FailingRelay

__all__ = ["BothWays", "both_ways"]


class BothWays:
    """`udp` as it is; TCP stands still while `tcp_black` is True, both ways."""

    def __init__(self, server: int) -> None:
        self.tcp_black = False
        self.connections = 0
        self._server = server
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self.udp: FailingRelay
        self.port = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        back_reader, back_writer = await asyncio.open_connection("127.0.0.1", self._server)
        self._writers.append(back_writer)
        for one, other in ((reader, back_writer), (back_reader, writer)):
            task = asyncio.ensure_future(self._pump(one, other))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError):
                while data := await reader.read(65536):
                    while self.tcp_black:
                        await asyncio.sleep(0.01)
                    writer.write(data)
                    await writer.drain()
        finally:
            writer.close()

    async def close(self) -> None:
        self.udp.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:  # a task that never began has closed nothing
            writer.close()


@asynccontextmanager
async def both_ways(server: int) -> AsyncIterator[BothWays]:
    ways = BothWays(server)
    for _ in range(20):
        tcp = await asyncio.start_server(ways.accept, "127.0.0.1", 0)
        ways.port = tcp.sockets[0].getsockname()[1]
        try:
            ways.udp = FailingRelay(server, port=ways.port)
        except OSError:
            tcp.close()
        else:
            break
    try:
        yield ways
    finally:
        tcp.close()
        await ways.close()
