"""A port that is free for both transports, for servers that come and go on it."""

from __future__ import annotations

import socket

__all__ = ["free_port"]


def free_port() -> int:
    """Free for TCP and UDP just now."""
    while True:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            number: int = tcp.getsockname()[1]
            try:
                udp.bind(("127.0.0.1", number))
            except OSError:
                continue
            return number
