"""A server of HTTP/1.1 over TLS that is none of ours, and answers what it is told to."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tenuto.tls import DevPair

__all__ = ["answer", "stranger"]


def answer(status: int, body: bytes, *, date: str = "") -> bytes:
    head = f"HTTP/1.1 {status} So\r\nContent-Length: {len(body)}\r\n"
    return (head + (f"Date: {date}\r\n" if date else "") + "\r\n").encode() + body


@contextmanager
def stranger(pair: DevPair, said: bytes) -> Iterator[int]:
    """Its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.current.chain_path, pair.current.key_path)

    def serve(listening: socket.socket) -> None:
        while True:
            try:
                plain, _ = listening.accept()
            except OSError:
                return
            with plain, suppress(OSError), context.wrap_socket(plain, server_side=True) as peer:
                if peer.recv(1000):
                    peer.sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
