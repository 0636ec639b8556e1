"""A UDP relay with a delay, for what only shows at a round trip of its own."""

from __future__ import annotations

import asyncio
import socket
from random import Random
from typing import Any

__all__ = ["FailingRelay", "SwitchingRelay", "delaying_relay"]


class _Upstream(asyncio.DatagramProtocol):
    """Brings the server's answers back to one client."""

    def __init__(self, front: _Front, client: Any) -> None:
        self._front = front
        self._client = client

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._front.later(data, self._client)


class _Front(asyncio.DatagramProtocol):
    def __init__(self, server: tuple[str, int], delay: float) -> None:
        self._server = server
        self._delay = delay
        self._loop = asyncio.get_running_loop()
        self._upstreams: dict[Any, asyncio.Future[asyncio.DatagramTransport]] = {}
        self.transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def later(self, data: bytes, client: Any) -> None:
        assert self.transport is not None
        self._loop.call_later(self._delay, self.transport.sendto, data, client)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if addr not in self._upstreams:
            self._upstreams[addr] = asyncio.ensure_future(self._open(addr))
        self._upstreams[addr].add_done_callback(
            lambda upstream: self._loop.call_later(self._delay, upstream.result().sendto, data)
        )

    async def _open(self, client: Any) -> asyncio.DatagramTransport:
        transport, _ = await self._loop.create_datagram_endpoint(
            lambda: _Upstream(self, client), remote_addr=self._server
        )
        return transport

    def close(self) -> None:
        assert self.transport is not None
        self.transport.close()
        for upstream in self._upstreams.values():
            upstream.result().close()


async def delaying_relay(port: int, delay: float) -> tuple[int, _Front]:
    """Relay to 127.0.0.1:`port` with `delay` seconds each way; its own port, and itself."""
    loop = asyncio.get_running_loop()
    transport, front = await loop.create_datagram_endpoint(
        lambda: _Front(("127.0.0.1", port), delay), local_addr=("127.0.0.1", 0)
    )
    bound: int = transport.get_extra_info("sockname")[1]
    return bound, front


class SwitchingRelay:
    """Takes one client's datagrams to whichever server is named now; others' answers are lost."""

    def __init__(self, server: int) -> None:
        self.server = server
        self._client: Any = None
        self._loop = asyncio.get_running_loop()
        self._front, self._back = (_bound() for _ in range(2))
        self.port: int = self._front.getsockname()[1]
        self._loop.add_reader(self._front.fileno(), self._forth)
        self._loop.add_reader(self._back.fileno(), self._back_again)

    def close(self) -> None:
        for each in (self._front, self._back):
            self._loop.remove_reader(each.fileno())
            each.close()

    def _forth(self) -> None:
        data, self._client = self._front.recvfrom(65536)
        self._back.sendto(data, ("127.0.0.1", self.server))

    def _back_again(self) -> None:
        data, source = self._back.recvfrom(65536)
        if source[1] == self.server and self._client is not None:
            self._front.sendto(data, self._client)


class FailingRelay:
    """Loses what it is told to, each way: one client after the other, from whatever port.

    `up` and `down` are the shares that are lost. `rate` lets so many bytes a second down, in
    order, and no datagram for longer than `QUEUE` seconds; what waits beyond is lost.
    """

    QUEUE = 1.5

    def __init__(self, server: int, *, port: int = 0, seed: int = 1) -> None:
        self.up = self.down = 0.0
        self.rate: float | None = None
        self.taken = 0
        """Datagrams that clients sent, lost or not."""
        self._random = Random(seed)
        self._server = ("127.0.0.1", server)
        self._loop = asyncio.get_running_loop()
        self._busy_until = 0.0
        self._backs: dict[Any, socket.socket] = {}
        self._forgotten: set[Any] = set()
        self._front = _bound(port)
        self.port: int = self._front.getsockname()[1]
        self._loop.add_reader(self._front.fileno(), self._forth)

    def black(self) -> None:
        self.up = self.down = 1.0

    def forget(self) -> None:
        """Whoever sent something until now is not known any more; new ports are."""
        self._forgotten.update(self._backs)

    def restore(self) -> None:
        self.up = self.down = 0.0
        self.rate = None

    def close(self) -> None:
        for each in (self._front, *self._backs.values()):
            self._loop.remove_reader(each.fileno())
            each.close()

    def _forth(self) -> None:
        data, client = self._front.recvfrom(65536)
        self.taken += 1
        if client not in self._backs:
            back = self._backs[client] = _bound()
            self._loop.add_reader(back.fileno(), self._down, back, client)
        if client not in self._forgotten and self._random.random() >= self.up:
            self._backs[client].sendto(data, self._server)

    def _down(self, back: socket.socket, client: Any) -> None:
        data = back.recv(65536)
        if client in self._forgotten or self._random.random() < self.down:
            return
        now = self._loop.time()
        if self.rate is None:
            self._front.sendto(data, client)
            return
        begin = max(now, self._busy_until)
        if begin - now > self.QUEUE:
            return
        self._busy_until = begin + len(data) / self.rate
        self._loop.call_at(self._busy_until, self._front.sendto, data, client)


def _bound(port: int = 0) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    bound.bind(("127.0.0.1", port))
    bound.setblocking(False)
    return bound
