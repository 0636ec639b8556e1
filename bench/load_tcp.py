"""Listeners over HTTP/1.1 by plain TLS sockets of asyncio."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path
from typing import cast

from bench.load_reader import Listener

__all__ = ["TcpListener", "client_context"]


def client_context(ca: Path) -> ssl.SSLContext:
    """TLS 1.3, as the servers under test speak it; shared by all listeners of a load."""
    context = ssl.create_default_context(cafile=ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["http/1.1"])
    return context


class TcpListener(asyncio.Protocol):
    """One connection with one request."""

    def __init__(self, port: int, context: ssl.SSLContext, path: str) -> None:
        self.heard = Listener()
        self._port = port
        self._context = context
        self._path = path
        self._transport: asyncio.Transport | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._buffer = b""
        self._headed = False
        self._left = 0
        """Bytes of the present chunk that have not come, its CRLF not counted."""
        self._closing = False

    def start(self) -> None:
        self.heard.began = time.monotonic()
        self._connecting = asyncio.create_task(self._connect())

    def close(self) -> None:
        self._closing = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, for uvloop's TLS transports are no `asyncio.Transport`.
        self._transport = cast(asyncio.Transport, transport)
        self.heard.connected = time.monotonic()
        self._transport.write(
            f"GET {self._path} HTTP/1.1\r\nHost: localhost\r\n"
            "Accept: application/vnd.tenuto.records\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self._buffer += data
        if not self._headed and not self._head():
            return
        self._chunks(now)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._closing:
            self.heard.fail(f"closed: {exc}")

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(
                lambda: self,
                "127.0.0.1",
                self._port,
                ssl=self._context,
                server_hostname="localhost",
            )
        except OSError as error:
            self.heard.fail(f"{error}")

    def _head(self) -> bool:
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return False
        self._headed = True
        self._buffer = rest
        if b" 200 " not in head.partition(b"\r\n")[0]:
            self.heard.fail(f"{head[:30]!r}")
        return True

    def _chunks(self, now: float) -> None:
        buffer, position = self._buffer, 0
        while position < len(buffer):
            if self._left:
                part = buffer[position : position + self._left]
                self.heard.feed(part, now)
                self._left -= len(part)
                position += len(part)
                continue
            # The CRLF behind the last chunk, and the size of this one.
            begin = position + 2 if buffer.startswith(b"\r\n", position) else position
            end = buffer.find(b"\r\n", begin)
            if end < 0:
                break
            self._left = int(buffer[begin:end], 16)
            position = end + 2
            if not self._left:
                self.heard.fail("the stream ended")
                break
        self._buffer = buffer[position:]
