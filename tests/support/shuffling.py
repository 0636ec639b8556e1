"""A UDP relay that loses datagrams and brings the others in another order, each way."""

from __future__ import annotations

import asyncio
import socket
from random import Random

__all__ = ["ShufflingRelay"]


class ShufflingRelay:
    """For one client of 127.0.0.1:`server`.

    A share `loss` of the datagrams is lost; each other one takes 0 to `spread` seconds.
    """

    def __init__(self, server: int, *, loss: float, spread: float, seed: int) -> None:
        self.lost = self.overtaken = 0
        """Datagrams to the client; overtaken are those that come after a later one."""
        self._loss = loss
        self._spread = spread
        self._random = Random(seed)
        self._server = ("127.0.0.1", server)
        self._client: tuple[str, int] | None = None
        self._sent = self._newest = 0
        self._loop = asyncio.get_running_loop()
        self._front, self._back = (_bound() for _ in range(2))
        self.port: int = self._front.getsockname()[1]
        self._loop.add_reader(self._front.fileno(), self._up)
        self._loop.add_reader(self._back.fileno(), self._down)
        self._closed = False

    def close(self) -> None:
        self._closed = True
        for each in (self._front, self._back):
            self._loop.remove_reader(each.fileno())
            each.close()

    def _up(self) -> None:
        data, self._client = self._front.recvfrom(65536)
        if self._random.random() >= self._loss:
            self._loop.call_later(self._wait(), self._forward, data)

    def _down(self) -> None:
        data = self._back.recv(65536)
        if self._random.random() < self._loss:
            self.lost += 1
            return
        self._sent += 1
        self._loop.call_later(self._wait(), self._answer, data, self._sent)

    def _wait(self) -> float:
        return self._random.random() * self._spread

    def _forward(self, data: bytes) -> None:
        if not self._closed:
            self._back.sendto(data, self._server)

    def _answer(self, data: bytes, number: int) -> None:
        self.overtaken += number < self._newest
        self._newest = max(self._newest, number)
        if not self._closed and self._client is not None:
            self._front.sendto(data, self._client)


def _bound() -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    bound.bind(("127.0.0.1", 0))
    bound.setblocking(False)
    return bound
