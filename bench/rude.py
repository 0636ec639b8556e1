"""Clients that misbehave, over TCP and QUIC, to see who else pays for it."""

from __future__ import annotations

import asyncio
import fcntl
import socket
import ssl
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from aioquic.h3.connection import H3_ALPN
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import HandshakeCompleted, StreamDataReceived, StreamReset

from tenuto.quic import Connection, Http3, ReceiveWindow

__all__ = ["QUIC_KINDS", "NeverReads", "StalledTcp", "stall_and_leave"]

_WINDOW = 64 * 1024


def stall_and_leave(
    port: int, ca: Path, path: str, *, seconds: float, abort: bool, http10: bool = False
) -> None:
    """Ask for a stream over TCP with a tiny receive buffer, read nothing, and go.

    With `abort` the connection ends in a RST, otherwise in a FIN. Blocks for `seconds`.
    """
    raw = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    if abort:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    context = ssl.create_default_context(cafile=ca)
    raw.settimeout(10)
    raw.connect(("127.0.0.1", port))
    connection = context.wrap_socket(raw, server_hostname="localhost")
    version = "1.0" if http10 else "1.1"
    connection.sendall(f"GET {path} HTTP/{version}\r\nHost: localhost\r\n\r\n".encode())
    time.sleep(seconds)
    # The socket below TLS, so that no close_notify softens the end.
    socket.socket(fileno=connection.detach()).close()


class StalledTcp:
    """A TLS client that asks when told to and takes nothing, or `pace` bytes/s.

    Its own kernel's buffer is as small as can be.
    """

    def __init__(self, port: int, ca: Path, path: str, *, pace: int = 0) -> None:
        self._port = port
        self._path = path
        self._pace = pace
        self._tls = ssl.create_default_context(cafile=ca)
        self._asked = asyncio.Event()
        self._socket: socket.socket | None = None
        self._taken = 0

    @property
    def received(self) -> int:
        """Bytes of TLS that have arrived here, read or not."""
        if self._socket is None or self._socket.fileno() < 0:
            return self._taken
        waiting = fcntl.ioctl(self._socket.fileno(), termios.FIONREAD, bytes(4))
        return self._taken + int.from_bytes(waiting, sys.byteorder)

    def ask(self) -> None:
        self._asked.set()

    async def run(self, seconds: float) -> None:
        """Connect, and hang on for so long."""
        raw = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        raw.settimeout(10)
        connection = await asyncio.to_thread(self._connect, raw)
        try:
            await self._asked.wait()
            self._socket = connection
            request = f"GET {self._path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
            connection.sendall(request.encode())
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                await asyncio.sleep(0.5)
                if self._pace:
                    self._taken += len(connection.recv(self._pace // 2))
        finally:
            connection.close()

    def _connect(self, raw: socket.socket) -> ssl.SSLSocket:
        raw.connect(("127.0.0.1", self._port))
        connection = self._tls.wrap_socket(raw, server_hostname="localhost")
        connection.setblocking(False)
        return connection


class NeverReads:
    """A QUIC client that takes in one window of a stream and consumes nothing of it.

    It acknowledges, so that its connection lives; `pace` is bytes/s it deigns to consume. With
    `wait` it asks when told to.
    """

    def __init__(
        self,
        port: int,
        ca: Path,
        path: str,
        *,
        pace: int = 0,
        stream_window: int = _WINDOW,
        connection_window: int = _WINDOW,
        wait: bool = False,
    ) -> None:
        window = ReceiveWindow(stream=stream_window, connection=connection_window)
        configuration = QuicConfiguration(
            is_client=True, alpn_protocols=H3_ALPN, server_name="localhost", cafile=str(ca)
        )
        self.quic = Connection(configuration=window.apply(configuration), window=window)
        self.received = 0
        self.reset_code: int | None = None
        """The code by which the server ended the stream, if it did."""
        self._path = path
        self._pace = pace
        self._may_ask = not wait
        self._server = ("127.0.0.1", port)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def ask(self) -> None:
        self._may_ask = True

    async def run(self, seconds: float, *, stop_sending_after: float | None = None) -> None:
        """Connect, ask, and hang on for so long; optionally send STOP_SENDING on the way."""
        try:
            await self._hang_on(seconds, stop_sending_after)
            self._transmit(time.monotonic())
        finally:
            self._socket.close()

    async def _hang_on(self, seconds: float, stop_sending_after: float | None) -> None:
        began = time.monotonic()
        self.quic.connect(self._server, now=began)
        http: Http3 | None = None
        stopped = connected = False
        end = began + seconds
        while (now := time.monotonic()) < end:
            self._transmit(now)
            await asyncio.sleep(0.005)
            now = time.monotonic()
            self._receive(now)
            while (event := self.quic.next_event()) is not None:
                if isinstance(event, HandshakeCompleted):
                    connected = True
                elif isinstance(event, StreamDataReceived) and event.stream_id == 0:
                    self.received += len(event.data)
                elif isinstance(event, StreamReset) and event.stream_id == 0:
                    self.reset_code = event.error_code
            if connected and self._may_ask and http is None:
                http = self._ask()
                began = now
            consumed = min(self.received, int(self._pace * (now - began)))
            self.quic.unconsumed(0, self.received - consumed)
            due = (
                stop_sending_after is not None
                and http is not None
                and now > began + stop_sending_after
            )
            if http is not None and due and not stopped:
                stopped = True
                with suppress(ValueError):  # it has just ended
                    self.quic.stop_stream(0, 0x10C)

    def _ask(self) -> Http3:
        http = Http3(self.quic)
        headers = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", b"localhost"),
            (b":path", self._path.encode()),
        ]
        http.respond(0, headers, end_stream=True)
        return http

    def _transmit(self, now: float) -> None:
        timer = self.quic.get_timer()
        if timer is not None and timer <= now:
            self.quic.handle_timer(now)
        for data, _ in self.quic.datagrams_to_send(now):
            self._socket.sendto(data, self._server)

    def _receive(self, now: float) -> None:
        while True:
            try:
                data = self._socket.recv(2000)
            except (BlockingIOError, ConnectionRefusedError):
                return
            self.quic.receive_datagram(data, self._server, now)


QUIC_KINDS: Mapping[str, Callable[[int, Path, str], NeverReads]] = {
    "reads nothing": partial(NeverReads, wait=True),
    "no connection credit": partial(NeverReads, wait=True, connection_window=0),
    "no stream credit": partial(NeverReads, wait=True, stream_window=0),
    "1 kB/s": partial(NeverReads, wait=True, pace=1000),
}
"""Ways to stand still, by name."""
