"""Listeners over HTTP/3 by qh3, which shares no code with the servers under test."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path

from qh3.h3.connection import H3_ALPN, H3Connection
from qh3.h3.events import DataReceived, HeadersReceived
from qh3.quic.configuration import QuicConfiguration
from qh3.quic.connection import QuicConnection
from qh3.quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    QuicEvent,
    StreamReset,
)

from bench.load_reader import Listener

__all__ = ["QuicListener"]


class QuicListener:
    """One connection with one request, driven by the readiness of its own socket."""

    def __init__(self, port: int, ca: Path, path: str) -> None:
        self.heard = Listener()
        self._server = ("127.0.0.1", port)
        configuration = QuicConfiguration(
            is_client=True, alpn_protocols=H3_ALPN, server_name="localhost", cafile=str(ca)
        )
        # Padding probes would be work that no listener asks for.
        configuration.probe_datagram_size = False
        self._quic = QuicConnection(configuration=configuration)
        self._http: H3Connection | None = None
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: float | None = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.connect(self._server)

    def start(self) -> None:
        now = self.heard.began = time.monotonic()
        self._loop.add_reader(self._socket.fileno(), self._readable)
        self._quic.connect(self._server, now=now)
        self._transmit(now)

    def close(self) -> None:
        self._quic.close()
        self._transmit(time.monotonic())
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    def _readable(self) -> None:
        now = time.monotonic()
        while True:
            try:
                data = self._socket.recv(2048)
            except BlockingIOError:
                break
            except OSError as error:
                self.heard.fail(f"{error}")
                break
            self._quic.receive_datagram(data, self._server, now)
        self._events(now)
        self._transmit(now)

    def _events(self, now: float) -> None:
        while (event := self._quic.next_event()) is not None:
            if isinstance(event, HandshakeCompleted):
                self._ask(now)
            elif isinstance(event, ConnectionTerminated):
                self.heard.fail(f"closed: {event.error_code:#x} {event.reason_phrase}")
            elif isinstance(event, StreamReset):
                self.heard.fail(f"reset: {event.error_code:#x}")
            if self._http is not None:
                self._http_events(self._http, event, now)

    def _http_events(self, http: H3Connection, event: QuicEvent, now: float) -> None:
        for http_event in http.handle_event(event):
            if isinstance(http_event, DataReceived):
                self.heard.feed(http_event.data, now)
            elif isinstance(http_event, HeadersReceived):
                status = dict(http_event.headers).get(b":status")
                if status != b"200":
                    self.heard.fail(f"status {status!r}")

    def _ask(self, now: float) -> None:
        self._http = http = H3Connection(self._quic)
        stream_id = self._quic.get_next_available_stream_id()
        headers = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", b"localhost"),
            (b":path", self._path.encode()),
            (b"accept", b"application/vnd.tenuto.records"),
        ]
        http.send_headers(stream_id, headers, end_stream=True)
        self.heard.connected = now

    def _transmit(self, now: float) -> None:
        for data, _ in self._quic.datagrams_to_send(now=now):
            try:
                self._socket.send(data)
            except OSError as error:
                self.heard.fail(f"{error}")
        timer = self._quic.get_timer()
        if timer == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = timer
        if timer is not None:
            delay = max(0.0, timer - time.monotonic())
            self._timer = self._loop.call_later(delay, self._expired)

    def _expired(self) -> None:
        now = time.monotonic()
        self._timer = self._timer_at = None
        self._quic.handle_timer(now)
        self._events(now)
        self._transmit(now)
