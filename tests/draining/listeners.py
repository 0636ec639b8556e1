"""Clients of every kind that hang on to a server: each does what a drain has to end."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from pathlib import Path

from aioquic.h3.connection import H3_ALPN
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import HandshakeCompleted, StreamDataReceived, StreamReset

from tenuto.quic import Connection, Http3, ReceiveWindow

__all__ = ["QuicClient", "half_open_quic", "request", "tls"]

ENDLESS = "source=counting&frames=1000000&lead=1"


def tls(port: int, ca: Path) -> ssl.SSLSocket:
    """A TLS connection, on which nothing was said yet."""
    context = ssl.create_default_context(cafile=ca)
    raw = socket.create_connection(("127.0.0.1", port), timeout=10)
    return context.wrap_socket(raw, server_hostname="localhost")


def request(
    port: int, ca: Path, path: str, *, method: str = "GET", headers: str = "", read: int = 1
) -> ssl.SSLSocket:
    """A request over HTTP/1.1 whose answer is read no further than `read` bytes."""
    connection = tls(port, ca)
    accept = "" if "Accept" in headers else "Accept: application/vnd.tenuto.records\r\n"
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{accept}{headers}\r\n"
    connection.sendall(head.encode())
    if read:
        assert connection.recv(read)
    return connection


def half_open_quic(port: int) -> socket.socket:
    """An Initial and nothing else: the server's handshake stays unfinished."""
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN)
    window = ReceiveWindow()
    quic = Connection(configuration=window.apply(configuration), window=window)
    quic.connect(("127.0.0.1", port), now=time.monotonic())
    raw = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for data, _ in quic.datagrams_to_send(time.monotonic()):
        raw.sendto(data, ("127.0.0.1", port))
    return raw


class QuicClient:
    """Requests over HTTP/3 in a thread. With `reads` False it acknowledges and consumes nothing."""

    def __init__(
        self, port: int, ca: Path, paths: list[tuple[str, str]], *, reads: bool = True
    ) -> None:
        self.data: dict[int, bytearray] = {}
        self.resets: dict[int, int] = {}
        self.goaway = False
        self.started = threading.Event()
        self._paths = paths
        self._reads = reads
        window = ReceiveWindow(stream=64 * 1024, connection=64 * 1024 * len(paths))
        configuration = QuicConfiguration(
            is_client=True, alpn_protocols=H3_ALPN, server_name="localhost", cafile=str(ca)
        )
        self._quic = Connection(configuration=window.apply(configuration), window=window)
        self._server = ("127.0.0.1", port)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(0.01)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.started.wait(10)

    def close(self) -> None:
        """Leave without a word."""
        self._over.set()
        self._thread.join(10)
        self._socket.close()

    def _run(self) -> None:
        self._quic.connect(self._server, now=time.monotonic())
        while not self._over.is_set():
            now = time.monotonic()
            timer = self._quic.get_timer()
            if timer is not None and timer <= now:
                self._quic.handle_timer(now)
            for data, _ in self._quic.datagrams_to_send(now):
                self._socket.sendto(data, self._server)
            with contextlib.suppress(TimeoutError, ConnectionRefusedError):
                data = self._socket.recv(2000)
                self._quic.receive_datagram(data, self._server, time.monotonic())
            while (event := self._quic.next_event()) is not None:
                if isinstance(event, HandshakeCompleted):
                    self._ask()
                elif isinstance(event, StreamDataReceived) and event.stream_id % 4 == 0:
                    self._heard(event.stream_id, event.data)
                elif isinstance(event, StreamReset):
                    self.resets[event.stream_id] = event.error_code

    def _heard(self, stream: int, data: bytes) -> None:
        held = self.data.setdefault(stream, bytearray())
        held += data
        self._quic.unconsumed(stream, 0 if self._reads else len(held))
        if len(self.data) >= len([path for _, path in self._paths if "speak" in path]):
            self.started.set()

    def _ask(self) -> None:
        http = Http3(self._quic)
        for number, (method, path) in enumerate(self._paths):
            http.respond(
                4 * number,
                [
                    (b":method", method.encode()),
                    (b":scheme", b"https"),
                    (b":authority", b"localhost"),
                    (b":path", path.encode()),
                    (b"accept", b"application/vnd.tenuto.records"),
                ],
                end_stream=method != "POST",
            )
