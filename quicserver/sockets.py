"""Binding: the same port for UDP and TCP on every address, or an error that helps."""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from fallback import TcpLimits, bind_tcp
from quicserver.limits import DoorLimits
from quicserver.listener import bind_udp
from tenuto.errors import OperatorError
from tenuto.settings import LOOPBACK
from tenuto.telemetry.events import AddressSkipped, BufferCutShort, Event

__all__ = ["BoundSockets", "bind_all"]

_NO_FAMILY = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_TRIES = 20


@dataclass(slots=True)
class BoundSockets:
    port: int = 0
    udp: list[socket.socket] = field(default_factory=list)
    tcp: list[socket.socket] = field(default_factory=list)

    def close(self) -> None:
        for each in self.udp + self.tcp:
            each.close()


def bind_all(
    hosts: tuple[str, ...],
    port: int,
    *,
    udp: bool,
    door: DoorLimits,
    tcp: TcpLimits,
    on_event: Callable[[Event], None],
) -> BoundSockets:
    """Bind every host; port 0 finds one that is free for both protocols everywhere.

    An address family this machine lacks is skipped if the hosts are the default ones.
    Raises `OperatorError` for a port in use and whatever else the kernel refuses.
    """
    for _ in range(_TRIES):
        bound = BoundSockets(port)
        try:
            for host in hosts:
                _bind_host(bound, host, hosts, udp=udp, door=door, tcp=tcp, on_event=on_event)
        except OSError as error:
            bound.close()
            if port == 0 and error.errno == errno.EADDRINUSE:
                continue
            raise _explain(error, bound.port) from None
        if bound.tcp:
            return bound
        raise OperatorError("none of the addresses can be bound", remedy=f"tried {hosts}")
    raise OperatorError(
        "found no port that is free for both UDP and TCP", remedy="name one with --port"
    )


def _bind_host(
    bound: BoundSockets,
    host: str,
    hosts: tuple[str, ...],
    *,
    udp: bool,
    door: DoorLimits,
    tcp: TcpLimits,
    on_event: Callable[[Event], None],
) -> None:
    try:
        listening = bind_tcp(host, bound.port, tcp)
    except OSError as error:
        if error.errno in _NO_FAMILY and hosts == LOOPBACK:
            on_event(AddressSkipped(host, error.strerror or str(error)))
            return
        error.filename = f"TCP {host}"
        raise
    bound.tcp.append(listening)
    bound.port = listening.getsockname()[1]
    # Two processes must not share a TCP port by SO_REUSEADDR while one of them listens.
    listening.listen(1024)
    if udp:
        try:
            datagrams = bind_udp(host, bound.port, door.socket_buffer)
        except OSError as error:
            error.filename = f"UDP {host}"
            raise
        bound.udp.append(datagrams)
        _look_at_buffers(datagrams, host, door.socket_buffer, on_event)


def _look_at_buffers(
    bound: socket.socket, host: str, asked: int, on_event: Callable[[Event], None]
) -> None:
    """Say so where a busy moment of the loop would lose packets, and what to do about it."""
    options = (socket.SO_RCVBUF, socket.SO_SNDBUF)
    granted = min(bound.getsockopt(socket.SOL_SOCKET, option) for option in options)
    if sys.platform == "linux":
        granted //= 2  # which counts its own bookkeeping too, and as much as the data
    if granted < asked // 2:
        advice = f"sysctl -w net.core.rmem_max={asked} net.core.wmem_max={asked}"
        on_event(BufferCutShort(host, asked, granted, advice))


def _explain(error: OSError, port: int) -> OperatorError:
    place = f"{error.filename} port {port}"
    if error.errno == errno.EADDRINUSE:
        return OperatorError(
            f"{place} is in use",
            remedy="stop the other process (`ss -lntup` names it) or choose another --port",
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return OperatorError(
            f"may not bind {place}", remedy="choose a --port above 1023 or run with the right"
        )
    return OperatorError(f"cannot bind {place}: {error.strerror}", remedy="check --host")
