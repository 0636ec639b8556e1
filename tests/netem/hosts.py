"""Sockets on the hosts of a bed."""

from __future__ import annotations

import socket

from netem.drivers.bed import Host

__all__ = ["address", "bound"]


def address(host: Host, family: int) -> str:
    return host.ipv6 if family == socket.AF_INET6 else host.ipv4


def bound(host: Host, family: int, kind: int = socket.SOCK_DGRAM) -> socket.socket:
    with host.entered():
        made = socket.socket(family, kind)
    made.settimeout(10.0)
    # SO_RCVBUFFORCE: what is lost shall be lost on the path.
    made.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)
    made.bind((address(host, family), 0))
    return made
