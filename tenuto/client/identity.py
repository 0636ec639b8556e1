"""Which network this is: so that what was learnt of one is not believed of another."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

from tenuto.client.target import Address

__all__ = ["network_identity"]

_PROC = Path("/proc/net")

_GATEWAY = 0x2
"""RTF_GATEWAY of <linux/route.h>."""

_GET_ESSID = 0x8B1B
"""SIOCGIWESSID of <linux/wireless.h>."""

_MAX_SSID = 32

_IPV4_CLASS = 24
_IPV6_CLASS = 64
"""Bits of the local address that tell its network, where no gateway does."""


def network_identity(addresses: Sequence[Address], proc: Path = _PROC) -> str | None:
    """A name for the network that the way to these addresses begins in; None where there is none.

    The default gateway by its addresses, with the name of the wireless network where the kernel
    tells it; else the prefix of our own address there. This machine itself is no network.
    """
    if not addresses or all(_is_loopback(address) for address in addresses):
        return None
    return _gateway(proc) or _local_class(addresses[0])


def _is_loopback(address: Address) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(address.sockaddr[0].partition("%")[0]).is_loopback
    return False


def _gateway(proc: Path) -> str | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        routes = [line.split() for line in (proc / "route").read_text("ascii").splitlines()[1:]]
        ways = [
            (int(fields[6]), fields[0], socket.inet_ntoa(struct.pack("=I", int(fields[2], 16))))
            for fields in routes
            if fields[1] == fields[7] == "00000000" and int(fields[3], 16) & _GATEWAY
        ]
        if ways:
            _, interface, address = min(ways)
            return f"{address} {_hardware(proc, interface, address)} {_ssid(interface)}".rstrip()
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = [line.split() for line in (proc / "ipv6_route").read_text("ascii").splitlines()]
        six = [
            (int(fields[5], 16), fields[9], fields[4])
            for fields in lines
            if fields[0] == "0" * 32 and fields[1] == "00" and int(fields[8], 16) & _GATEWAY
        ]
        if six:
            _, interface, address = min(six)
            return f"{address} {_ssid(interface)}".rstrip()
    return None


def _hardware(proc: Path, interface: str, address: str) -> str:
    """The gateway's MAC: private networks have the same addresses all over the world."""
    with contextlib.suppress(OSError, IndexError):
        for line in (proc / "arp").read_text("ascii").splitlines()[1:]:
            fields = line.split()
            if fields[0] == address and fields[5] == interface:
                return fields[3]
    return ""


def _ssid(interface: str) -> str:
    """The wireless network's name, where this is one and the kernel still knows the call."""
    if sys.platform != "linux":
        return ""
    import fcntl  # not on Windows

    name = bytearray(_MAX_SSID)
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        # struct iwreq: the interface's name, then a pointer, its length and flags.
        where = (_Pinned(name)).address
        request = struct.pack("16sPHH", interface.encode()[:15], where, _MAX_SSID, 0)
        answer = fcntl.ioctl(asking, _GET_ESSID, request)
        length = struct.unpack("16sPHH", answer)[2]
        return bytes(name[:length]).hex()
    return ""


class _Pinned:
    """Where a buffer lies, for as long as this object does."""

    def __init__(self, buffer: bytearray) -> None:
        import ctypes

        self._held = (ctypes.c_char * len(buffer)).from_buffer(buffer)
        self.address = ctypes.addressof(self._held)


def _local_class(address: Address) -> str | None:
    """The prefix of the address that we have towards that one; nothing is sent."""
    with (
        contextlib.suppress(OSError, ValueError),
        socket.socket(address.family, socket.SOCK_DGRAM) as towards,
    ):
        towards.connect(address.sockaddr)
        ours = ipaddress.ip_address(towards.getsockname()[0].partition("%")[0])
        bits = _IPV4_CLASS if ours.version == 4 else _IPV6_CLASS
        return str(ipaddress.ip_network(f"{ours}/{bits}", strict=False))
    return None
