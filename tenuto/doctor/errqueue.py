"""What ICMP said about a UDP socket's packets: Linux's error queue (ip(7)), else plain errno."""

from __future__ import annotations

import errno
import socket
import struct
import sys
from dataclasses import dataclass

from tenuto.doctor.diagnosis.evidence import IcmpKind

__all__ = [
    "SocketError",
    "errors_behind",
    "explained",
    "prepare",
    "queued_errors",
    "read_extended",
]

_RECVERR = {socket.AF_INET: (socket.IPPROTO_IP, 11), socket.AF_INET6: (socket.IPPROTO_IPV6, 25)}
_MTU_DISCOVER = {
    socket.AF_INET: (socket.IPPROTO_IP, 10),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 23),
}
_PMTUDISC_PROBE = 3
"""Do not fragment, and believe no path MTU from before."""

_EXTENDED = struct.Struct("=IBBBBII")
_ORIGIN_LOCAL, _ORIGIN_ICMP, _ORIGIN_ICMP6 = 1, 2, 3
_MOST_AT_ONCE = 64

# RFC 792 and 1812, type 3; RFC 4443, type 1.
_UNREACHABLE, _UNREACHABLE6, _TOO_BIG6 = 3, 1, 2
_PORT_CODES = {_ORIGIN_ICMP: 3, _ORIGIN_ICMP6: 4}
_PROHIBITED_CODES = {_ORIGIN_ICMP: (9, 10, 13), _ORIGIN_ICMP6: (1, 5, 6)}
_FRAGMENTATION_NEEDED = 4


@dataclass(frozen=True, slots=True)
class SocketError:
    kind: IcmpKind
    by: str = ""
    mtu: int = 0


def prepare(made: socket.socket) -> None:
    """Ask for errors with their senders, and for packets that are never fragmented."""
    if sys.platform != "linux":
        return
    made.setsockopt(*_RECVERR[socket.AddressFamily(made.family)], 1)
    made.setsockopt(*_MTU_DISCOVER[socket.AddressFamily(made.family)], _PMTUDISC_PROBE)


def queued_errors(made: socket.socket) -> list[SocketError]:
    """Those that wait; none where the system has no such queue."""
    if sys.platform != "linux":
        return []
    errors: list[SocketError] = []
    wanted = _RECVERR[socket.AddressFamily(made.family)]
    for _ in range(_MOST_AT_ONCE):
        try:
            _, ancillary, _, _ = made.recvmsg(0, 512, socket.MSG_ERRQUEUE)
        except OSError:
            break
        for level, kind, data in ancillary:
            if (level, kind) == wanted and (error := read_extended(data)) is not None:
                errors.append(error)
    return errors


def read_extended(data: bytes) -> SocketError | None:
    """A `struct sock_extended_err` and the address behind it; None for what is not about ICMP."""
    if len(data) < _EXTENDED.size:
        return None
    number, origin, kind, code, _, info, _ = _EXTENDED.unpack_from(data)
    if origin == _ORIGIN_LOCAL:
        return SocketError(IcmpKind.TOO_BIG, mtu=info) if number == errno.EMSGSIZE else None
    if origin not in _PORT_CODES:
        return None
    by = _offender(data[_EXTENDED.size :])
    if origin == _ORIGIN_ICMP6 and kind == _TOO_BIG6:
        return SocketError(IcmpKind.TOO_BIG, by, info)
    if kind != (_UNREACHABLE if origin == _ORIGIN_ICMP else _UNREACHABLE6):
        return None
    if origin == _ORIGIN_ICMP and code == _FRAGMENTATION_NEEDED:
        return SocketError(IcmpKind.TOO_BIG, by, info)
    if code == _PORT_CODES[origin]:
        return SocketError(IcmpKind.PORT, by)
    if code in _PROHIBITED_CODES[origin]:
        return SocketError(IcmpKind.PROHIBITED, by)
    return SocketError(IcmpKind.UNREACHABLE, by)


def _offender(data: bytes) -> str:
    family = int.from_bytes(data[:2], sys.byteorder)
    if family == socket.AF_INET and len(data) >= 8:
        return socket.inet_ntop(socket.AF_INET, data[4:8])
    if family == socket.AF_INET6 and len(data) >= 24:
        return socket.inet_ntop(socket.AF_INET6, data[8:24])
    return ""


def errors_behind(made: socket.socket, raised: OSError) -> list[SocketError]:
    """What a failed receive is about: the queue tells it better, where there is one."""
    return queued_errors(made) if sys.platform == "linux" else explained(raised)


def explained(error: OSError) -> list[SocketError]:
    """From an error that a call raised, as far as that goes: one, or none."""
    if isinstance(error, ConnectionRefusedError | ConnectionResetError):  # Windows says reset
        return [SocketError(IcmpKind.PORT)]
    if error.errno == errno.EMSGSIZE:
        return [SocketError(IcmpKind.TOO_BIG)]
    if error.errno in (errno.EACCES, errno.EPERM):
        return [SocketError(IcmpKind.PROHIBITED)]
    if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN):
        return [SocketError(IcmpKind.UNREACHABLE)]
    return []
