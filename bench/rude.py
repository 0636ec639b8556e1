"""Clients that misbehave, over TCP and QUIC, to see who else pays for it."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from pathlib import Path

from aioquic.h3.connection import H3_ALPN
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import HandshakeCompleted, StreamDataReceived, StreamReset

from tenuto.quic import Connection, Http3, ReceiveWindow

__all__ = ["NeverReads", "stall_and_leave"]


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


class NeverReads:
    """A QUIC client that takes in one window of a stream and consumes nothing of it.

    It acknowledges, so that its connection lives; `pace` is bytes/s it deigns to consume.
    """

    def __init__(self, port: int, ca: Path, path: str, *, pace: int = 0) -> None:
        window = ReceiveWindow(stream=64 * 1024, connection=64 * 1024)
        configuration = QuicConfiguration(
            is_client=True, alpn_protocols=H3_ALPN, server_name="localhost", cafile=str(ca)
        )
        self.quic = Connection(configuration=window.apply(configuration), window=window)
        self.received = 0
        self.reset_code: int | None = None
        """The code by which the server ended the stream, if it did."""
        self._path = path
        self._pace = pace
        self._server = ("127.0.0.1", port)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    async def run(self, seconds: float, *, stop_sending_after: float | None = None) -> None:
        """Connect, ask, and hang on for so long; optionally send STOP_SENDING on the way."""
        began = time.monotonic()
        self.quic.connect(self._server, now=began)
        http: Http3 | None = None
        stopped = False
        while (now := time.monotonic()) < began + seconds:
            self._transmit(now)
            await asyncio.sleep(0.005)
            now = time.monotonic()
            self._receive(now)
            while (event := self.quic.next_event()) is not None:
                if isinstance(event, HandshakeCompleted):
                    http = self._ask()
                elif isinstance(event, StreamDataReceived) and event.stream_id == 0:
                    self.received += len(event.data)
                elif isinstance(event, StreamReset) and event.stream_id == 0:
                    self.reset_code = event.error_code
            consumed = min(self.received, int(self._pace * (now - began)))
            self.quic.unconsumed(0, self.received - consumed)
            due = stop_sending_after is not None and now > began + stop_sending_after
            if http is not None and due and not stopped:
                stopped = True
                self.quic.stop_stream(0, 0x10C)
        self._transmit(time.monotonic())
        self._socket.close()

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
