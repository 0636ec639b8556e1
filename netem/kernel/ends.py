"""The two kinds of descriptor that whole IP packets come from and go to."""

import os
import socket
import struct
from typing import Final, Protocol

__all__ = ["HOST_ADDRESS", "End", "PacketEnd", "TunEnd", "open_end"]

LARGEST: Final = 65_600
"""More than any IP packet has."""


class End(Protocol):
    fd: int

    def read(self) -> bytes | None:
        """The next packet, None if there is none yet."""
        ...

    def write(self, packet: bytes) -> bool:
        """Whether the host took it."""
        ...

    def unread(self) -> int:
        """Packets that went before they were read, as far as this end knows."""
        ...


class TunEnd:
    """A TUN device: reads are what its host sends, writes are what its host receives."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def read(self) -> bytes | None:
        try:
            return os.read(self.fd, LARGEST)
        except BlockingIOError:
            return None

    def write(self, packet: bytes) -> bool:
        try:
            os.write(self.fd, packet)
        except OSError:
            return False
        return True

    def unread(self) -> int:
        return 0


class PacketEnd:
    """A packet socket on the near end of a veth pair; the host has the far end."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._socket = socket.socket(fileno=fd)
        self._dropped = 0

    def read(self) -> bytes | None:
        while True:
            try:
                frame = os.read(self.fd, LARGEST)
            except BlockingIOError:
                return None
            # A program on the host may send anything by a packet socket of its own.
            if frame[12:14] in (_IPV4, _IPV6) and len(frame) > 14:
                return frame[14:]

    def write(self, packet: bytes) -> bool:
        header = _TO_HOST_IPV4 if packet[0] >> 4 == 4 else _TO_HOST_IPV6
        try:
            os.write(self.fd, header + packet)
        except OSError:
            return False
        return True

    def unread(self) -> int:
        # packet(7): reading the statistics sets them back.
        told = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        _, dropped = struct.unpack("II", told)
        self._dropped += dropped
        return self._dropped

    @classmethod
    def open(cls, interface: str) -> int:
        """A descriptor on a device of the namespace that this thread is in."""
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
        try:
            opened.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
            _enlarge(opened)
            opened.bind((interface, _ETH_P_ALL))
            return opened.detach()
        finally:
            opened.close()


def _enlarge(opened: socket.socket) -> None:
    try:
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, RECEIVE_BUFFER)
    except PermissionError:
        # In a user namespace: up to net.core.rmem_max, the kernel cuts it itself.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)


def open_end(kind: str, fd: int) -> End:
    """`kind` is `tun` or `packet`."""
    return TunEnd(fd) if kind == "tun" else PacketEnd(fd)


RECEIVE_BUFFER: Final = 16 << 20
"""Bytes; a small packet takes up about a kilobyte of it."""

HOST_ADDRESS: Final = "02:00:00:00:00:01"
"""Of each host's end of its veth pair: it has the wire for itself."""

_TO_HOST: Final = bytes.fromhex("020000000001" + "0200000000fe")
_IPV4: Final = bytes.fromhex("0800")
_IPV6: Final = bytes.fromhex("86dd")
_TO_HOST_IPV4: Final = _TO_HOST + _IPV4
_TO_HOST_IPV6: Final = _TO_HOST + _IPV6

# linux/if_packet.h and linux/if_ether.h
_SOL_PACKET: Final = 263
_PACKET_STATISTICS: Final = 6
_PACKET_IGNORE_OUTGOING: Final = 23
_ETH_P_ALL: Final = 0x0003
_SO_RCVBUFFORCE: Final = 33
