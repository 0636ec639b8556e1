"""The two ends of a measurement: UDP sockets that lose nothing themselves and keep time.

The kernel notes when a packet arrives, so it does not matter how soon somebody reads it.
"""

import socket
import struct
import sys
import time
from typing import Final, NamedTuple

from netem.errors import NetemError

__all__ = ["Address", "Heard", "hear", "open_socket", "send_unchecked"]

Address = tuple[str, int]

# linux/socket.h and linux/udp.h; Python names none of them.
_SO_NO_CHECK: Final = 11
_SO_RCVBUFFORCE: Final = 33
_SO_TIMESTAMPNS: Final = 35
_SO_RXQ_OVFL: Final = 40
_UDP_NO_CHECK6_TX: Final = 101
_UDP_NO_CHECK6_RX: Final = 102
_MTU_DISCOVER: Final = {socket.AF_INET: (socket.IPPROTO_IP, 10), socket.AF_INET6: (41, 23)}
_PMTUDISC_PROBE: Final = 3

RECEIVE_BUFFER: Final = 32 << 20
_TIMESPEC: Final = struct.Struct("@qq")
_COUNT: Final = struct.Struct("@I")
_ANCILLARY: Final = 256
_LARGEST: Final = 65535


class Heard(NamedTuple):
    payload: bytes
    at: int
    """Nanoseconds of the wall clock."""
    overflowed: int
    """Packets that found no room in the socket until now."""
    source: Address


def open_socket(host: str, port: int = 0) -> socket.socket:
    """A socket bound to `host`, in the network namespace of the calling thread."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    end = socket.socket(family, socket.SOCK_DGRAM)
    try:
        end.setblocking(False)
        try:
            end.bind((host, port))
        except OSError as error:
            raise NetemError(f"{host} port {port}: {error.strerror}") from None
        _make_room(end)
        if sys.platform == "linux":
            end.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            end.setsockopt(socket.SOL_SOCKET, _SO_RXQ_OVFL, 1)
            # Packets stay whole: what does not fit the path shall be seen as lost.
            level, option = _MTU_DISCOVER[family]
            end.setsockopt(level, option, _PMTUDISC_PROBE)
    except BaseException:
        end.close()
        raise
    return end


def send_unchecked(end: socket.socket) -> None:
    """Without a checksum of UDP, so a damaged packet is delivered."""
    if end.family == socket.AF_INET:
        end.setsockopt(socket.SOL_SOCKET, _SO_NO_CHECK, 1)
    else:
        end.setsockopt(socket.IPPROTO_UDP, _UDP_NO_CHECK6_TX, 1)
        end.setsockopt(socket.IPPROTO_UDP, _UDP_NO_CHECK6_RX, 1)


def hear(end: socket.socket) -> Heard | None:
    """The next packet, if one waits."""
    try:
        payload, ancillary, _, source = end.recvmsg(_LARGEST, _ANCILLARY)
    except BlockingIOError:
        return None
    at = overflowed = 0
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
            seconds, nanoseconds = _TIMESPEC.unpack_from(data)
            at = seconds * 1_000_000_000 + nanoseconds
        elif level == socket.SOL_SOCKET and kind == _SO_RXQ_OVFL:
            (overflowed,) = _COUNT.unpack_from(data)
    return Heard(payload, at or time.time_ns(), overflowed, (source[0], source[1]))


def _make_room(end: socket.socket) -> None:
    try:
        end.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, RECEIVE_BUFFER)
    except OSError:
        # Not root: as much as the system gives; what finds no room is counted.
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
