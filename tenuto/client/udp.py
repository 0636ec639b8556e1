"""A connected UDP socket, so that the kernel tells us what ICMP says about the peer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

from tenuto.client.target import Address

__all__ = ["UdpSocket"]

# Datagrams read in one go before other tasks get their turn.
_BURST = 64

_MAX_DATAGRAM_SIZE = 65536

_RECEIVE_BUFFER = 1024 * 1024


class UdpSocket:
    """Hands over all datagrams that wait as one burst, and errors as they come.

    `on_burst` gets at most 64 datagrams, `on_error` what ICMP or the system reported.
    `local` is a socket whose port is used, and which stays open. Raises `OSError` where the
    address cannot be reached from here at all.
    """

    def __init__(
        self,
        address: Address,
        on_burst: Callable[[list[bytes]], None],
        on_error: Callable[[OSError], None],
        local: socket.socket | None = None,
    ) -> None:
        self._on_burst = on_burst
        self._on_error = on_error
        self._loop = asyncio.get_running_loop()
        self._pump: asyncio.Task[None] | None = None
        self._socket = (
            socket.socket(address.family, socket.SOCK_DGRAM) if not local else local.dup()
        )
        try:
            self._socket.setblocking(False)
            with suppress(OSError):  # a wish
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
            self._socket.connect(address.sockaddr)
            self._listen()
        except BaseException:
            self._socket.close()
            raise

    @property
    def host(self) -> str:
        """The address of ours that the system chose."""
        host: str = self._socket.getsockname()[0]
        return host

    def ignore_errors(self) -> None:
        """From now on whatever fails here is nobody's business."""
        self._on_error = _ignore

    def send(self, datagram: bytes) -> None:
        """Send or lose it: QUIC repairs what a full buffer drops, and closed is closed."""
        if self._socket.fileno() < 0:
            return
        try:
            self._socket.send(datagram)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._on_error(error)

    def close(self) -> None:
        if self._socket.fileno() < 0:
            return
        if self._pump is not None:
            self._pump.cancel()
        else:
            self._loop.remove_reader(self._socket)
        self._socket.close()

    def _listen(self) -> None:
        try:
            self._loop.add_reader(self._socket, self._read)
        except NotImplementedError:  # Windows' proactor loop
            self._pump = self._loop.create_task(self._receive())

    def _read(self) -> None:
        burst: list[bytes] = []
        failure: OSError | None = None
        while len(burst) < _BURST:
            try:
                burst.append(self._socket.recv(_MAX_DATAGRAM_SIZE))
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                failure = error
                break
        if burst:
            self._on_burst(burst)
        if failure is not None:
            self._on_error(failure)

    async def _receive(self) -> None:
        while True:
            try:
                datagram = await self._loop.sock_recv(self._socket, _MAX_DATAGRAM_SIZE)
            except OSError as error:
                self._on_error(error)
                await asyncio.sleep(0)  # an error that stays must not keep the loop
            else:
                self._on_burst([datagram])


def _ignore(_: OSError) -> None:
    """The port was left behind."""
