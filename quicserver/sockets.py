"""Binding: the same port for UDP and TCP on every address, or an error that helps."""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fallback import TcpLimits, bind_tcp
from quicserver.limits import DoorLimits
from quicserver.listener import bind_udp
from tenuto.errors import OperatorError
from tenuto.settings import LOOPBACK
from tenuto.telemetry.events import AddressSkipped, BufferCutShort, Event

__all__ = ["BoundSockets", "PortInUse", "bind_all"]

_NO_FAMILY = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_TRIES = 20


class PortInUse(OperatorError):  # noqa: N818
    """Another process has it, perhaps one that is about to end."""


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
    inherited: Sequence[socket.socket] = (),
) -> BoundSockets:
    """Bind every host; port 0 finds one that is free for both protocols everywhere.

    Sockets that a predecessor has bound so are taken over, and the others of them closed.
    An address family this machine lacks is skipped if the hosts are the default ones.
    Raises `OperatorError` for a port in use and whatever else the kernel refuses.
    """
    wanted = _Wanted(hosts, udp, door, tcp, on_event, _Inherited(inherited, port))
    try:
        for _ in range(_TRIES):
            bound = BoundSockets(wanted.inherited.port or port)
            try:
                for host in hosts:
                    _bind_host(bound, host, wanted)
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
    finally:
        wanted.inherited.close()


class _Inherited:
    """A predecessor's sockets, by what they are bound to, until somebody takes them."""

    def __init__(self, sockets: Sequence[socket.socket], port: int) -> None:
        self._sockets: dict[tuple[int, str, int], socket.socket] = {}
        self.port = 0
        """The one that is gone on with."""
        for each in sockets:
            host, bound = each.getsockname()[:2]
            self._sockets[each.type, host, bound] = each
            if port in (0, bound):
                self.port = bound

    def take(self, kind: socket.SocketKind, host: str, port: int) -> socket.socket | None:
        return self._sockets.pop((kind, host, port), None)

    def close(self) -> None:
        for each in self._sockets.values():
            each.close()
        self._sockets.clear()


@dataclass(frozen=True, slots=True)
class _Wanted:
    hosts: tuple[str, ...]
    udp: bool
    door: DoorLimits
    tcp: TcpLimits
    on_event: Callable[[Event], None]
    inherited: _Inherited


def _bind_host(bound: BoundSockets, host: str, wanted: _Wanted) -> None:
    # UDP first: who ends keeps it to the last, and TCP connects to us would only be reset.
    if wanted.udp and bound.port and not _bind_udp_host(bound, host, wanted):
        return
    listening = wanted.inherited.take(socket.SOCK_STREAM, host, bound.port)
    try:
        listening = listening or bind_tcp(host, bound.port, wanted.tcp)
    except OSError as error:
        if _skips(error, host, wanted):
            return
        error.filename = f"TCP {host}"
        raise
    bound.tcp.append(listening)
    fresh, bound.port = not bound.port, listening.getsockname()[1]
    # Two processes must not share a TCP port by SO_REUSEADDR while one of them listens.
    listening.listen(1024)
    if wanted.udp and fresh:
        _bind_udp_host(bound, host, wanted)


def _bind_udp_host(bound: BoundSockets, host: str, wanted: _Wanted) -> bool:
    """False where this machine lacks the address family of a default address."""
    taken = wanted.inherited.take(socket.SOCK_DGRAM, host, bound.port)
    asked = wanted.door.socket_buffer
    try:
        bound.udp.append(taken or bind_udp(host, bound.port, asked))
    except OSError as error:
        if _skips(error, host, wanted):
            return False
        error.filename = f"UDP {host}"
        raise
    _look_at_buffers(bound.udp[-1], host, asked, wanted.on_event)
    return True


def _skips(error: OSError, host: str, wanted: _Wanted) -> bool:
    if error.errno not in _NO_FAMILY or wanted.hosts != LOOPBACK:
        return False
    wanted.on_event(AddressSkipped(host, error.strerror or str(error)))
    return True


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
        return PortInUse(
            f"{place} is in use",
            remedy="stop the other process (`ss -lntup` names it) or choose another --port",
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return OperatorError(
            f"may not bind {place}", remedy="choose a --port above 1023 or run with the right"
        )
    return OperatorError(f"cannot bind {place}: {error.strerror}", remedy="check --host")
