"""A relay of UDP and TCP on one port that delays, and that cuts what goes through it."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress

__all__ = ["CuttingRelay", "cutting_relay"]

_HOST = "127.0.0.1"
_READ = 65536


class _Back(asyncio.DatagramProtocol):
    """The server's answers to one client."""

    def __init__(self, relay: CuttingRelay, client: tuple[str, int]) -> None:
        self._relay = relay
        self._client = client

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._relay.later(self._relay.answer, data, self._client)


class _Front(asyncio.DatagramProtocol):
    def __init__(self, relay: CuttingRelay) -> None:
        self._relay = relay

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._relay.later(self._relay.forward, data, addr)


class CuttingRelay:
    """Between one client and the server on `port`; every byte is `delay` seconds late each way.

    TCP's own handshake is made with the relay, and so is not delayed; TLS and all else is.
    """

    def __init__(self, port: int, delay: float) -> None:
        self._server = (_HOST, port)
        self._delay = delay
        self._loop = asyncio.get_running_loop()
        self._front: asyncio.DatagramTransport | None = None
        self._backs: dict[tuple[str, int], asyncio.DatagramTransport] = {}
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self.port = 0

    async def open(self) -> None:
        for _ in range(50):
            self._listener = await asyncio.start_server(self._accept, _HOST, 0)
            self.port = self._listener.sockets[0].getsockname()[1]
            with suppress(OSError):  # another has that port for UDP
                await self.open_udp()
                return
            self._listener.close()
        raise OSError("no port is free for both")

    async def open_udp(self) -> None:
        self._front, _ = await self._loop.create_datagram_endpoint(
            lambda: _Front(self), local_addr=(_HOST, self.port)
        )

    def close_udp(self) -> None:
        """All that is under way is lost, and the port answers by ICMP that nobody is there."""
        if self._front is not None:
            self._front.abort()
            self._front = None
        for back in self._backs.values():
            back.abort()
        self._backs.clear()

    def reset_tcp(self) -> None:
        """RST to both sides; what is still in their buffers is lost."""
        for writer in self._writers:
            plug: socket.socket = writer.get_extra_info("socket")
            with suppress(OSError):
                plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        self._writers.clear()

    async def aclose(self) -> None:
        self.close_udp()
        self.reset_tcp()
        if self._listener is not None:
            self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def later(
        self, call: Callable[[bytes, tuple[str, int]], None], data: bytes, client: tuple[str, int]
    ) -> None:
        if self._delay:
            self._loop.call_later(self._delay, call, data, client)
        else:
            call(data, client)

    def answer(self, data: bytes, client: tuple[str, int]) -> None:
        if self._front is not None and client in self._backs:
            self._front.sendto(data, client)

    def forward(self, data: bytes, client: tuple[str, int]) -> None:
        back = self._backs.get(client)
        if back is not None:
            back.sendto(data)
        elif self._front is not None:
            self._start(self._open_back(data, client))

    async def _open_back(self, data: bytes, client: tuple[str, int]) -> None:
        back, _ = await self._loop.create_datagram_endpoint(
            lambda: _Back(self, client), remote_addr=self._server
        )
        self._backs.setdefault(client, back).sendto(data)
        if self._backs[client] is not back:
            back.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, to_server = await asyncio.open_connection(*self._server)
        except OSError:
            writer.transport.abort()
            return
        self._writers += [writer, to_server]
        self._start(self._copy(reader, to_server))
        self._start(self._copy(there, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(_READ):
                if self._delay:
                    self._loop.call_later(self._delay, self._write, writer, data)
                else:
                    self._write(writer, data)
        self._loop.call_later(self._delay, writer.close)

    def _write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        if not writer.is_closing():
            writer.write(data)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@asynccontextmanager
async def cutting_relay(port: int, delay: float) -> AsyncIterator[CuttingRelay]:
    relay = CuttingRelay(port, delay)
    await relay.open()
    try:
        yield relay
    finally:
        await relay.aclose()
