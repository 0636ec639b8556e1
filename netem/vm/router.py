"""The two hosts on either side of the machine, and the machine as the router between them.

No host looks for another's hardware address: every one is set. So no packet is lost or delayed by
a question, and none but the caller's is on the path.
"""

import ipaddress
import os
import struct
import sys
from collections.abc import Iterator
from typing import Final

from netem.drivers.addresses import Subnet
from netem.drivers.bed import Host
from netem.errors import ImpairmentError
from netem.kernel.interfaces import configure, set_sysctl
from netem.kernel.namespaces import Namespace
from netem.vm.machine import mac_address

if sys.platform == "linux":
    import fcntl

__all__ = ["INTERFACES", "make_host", "open_tap", "router_script"]

INTERFACES: Final = ("eth0", "eth1")
"""Of the machine: to the client, to the server."""
_HOST_INTERFACE: Final = "eth0"
_QUEUE: Final = 2000
"""Packets that wait for the emulated processor before the host's own device drops them."""
_TUN_DEVICE: Final = "/dev/net/tun"
_TUNSETIFF: Final = 0x400454CA
_IFF_TAP: Final = 0x0002
_IFF_NO_PI: Final = 0x1000
_IFF_VNET_HDR: Final = 0x4000
_LENGTHS: Final = (31, 127)
_SUBNET: Final = Subnet(0)
"""Each bed has namespaces of its own, so all may use the same."""


def open_tap(namespace: Namespace, name: str) -> int:
    """An Ethernet device in there, whose other end is this descriptor."""
    descriptor = -1
    try:
        with namespace.entered():
            descriptor = os.open(_TUN_DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR
            fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        raise ImpairmentError(
            f"TAP is refused here ({_TUN_DEVICE}: {error.strerror}): the machine needs root."
        ) from None
    return descriptor


def make_host(number: int, congestion: str) -> tuple[Host, int]:
    """The client (0) or the server (1), and the far end of its only cable.

    `congestion` is TCP's congestion control on the way to the other.
    """
    own4, own6 = _addresses(number)
    namespace = Namespace.new()
    try:
        tap = open_tap(namespace, _HOST_INTERFACE)
        set_sysctl(namespace, f"ipv6/conf/{_HOST_INTERFACE}/accept_ra", "0")
        device = f"dev {_HOST_INTERFACE}"
        lines = [
            "link set lo up",
            *_quiet(device),
            f"link set {device} address {_host_mac(number)} txqueuelen {_QUEUE} up",
            *_addressing(device, (own4, own6)),
            *_neighbour(
                device, _addresses(1 - number), mac_address(number), (own4, own6), congestion
            ),
        ]
        configure(namespace, lines)
    except BaseException:
        namespace.close()
        raise
    host = Host(namespace=namespace, interface=_HOST_INTERFACE, ipv4=own4, ipv6=own6)
    return host, tap


def router_script() -> str:
    """For the machine's shell, once: devices, addresses, routes, forwarding."""
    lines = [
        "echo 1 > /proc/sys/net/ipv6/mld_qrv",
        "echo 1 > /proc/sys/net/ipv4/ip_forward",
        "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
    ]
    for number, interface in enumerate(INTERFACES):
        device = f"dev {interface}"
        # Whom its ICMP comes from.
        own = (str(_SUBNET.ipv4[253 + number]), f"{_SUBNET.server6}:{number}")
        commands = [
            *_quiet(device),
            f"link set {device} up",
            *_addressing(device, own),
            *_neighbour(device, _addresses(number), _host_mac(number), own),
        ]
        settings = f"/proc/sys/net/ipv6/conf/{interface}"
        lines.append(f"echo 0 > {settings}/accept_ra")
        # A router has groups to report, whatever the device says: soon, then, and once.
        lines.append(f"echo 1 > {settings}/mldv2_unsolicited_report_interval")
        lines += [f"ip {command}" for command in commands]
    lines.append("sleep 0.1")
    return "\n".join(lines)


def _addresses(number: int) -> tuple[str, str]:
    if number == 0:
        return _SUBNET.client4, _SUBNET.client6
    return _SUBNET.server4, _SUBNET.server6


def _quiet(device: str) -> Iterator[str]:
    """Neither an address of its own making nor a group to report, so no packet of its own."""
    yield f"link set {device} addrgenmode none"
    yield f"link set {device} multicast off"


def _addressing(device: str, own: tuple[str, str]) -> Iterator[str]:
    yield f"address add {own[0]}/32 {device}"
    yield f"address add {own[1]}/128 {device} nodad"


def _neighbour(
    device: str, peer: tuple[str, str], mac: str, own: tuple[str, str], congestion: str = ""
) -> Iterator[str]:
    """The way to `peer`, behind or at the hardware address `mac`."""
    pinned = f" congctl {congestion}" if congestion else ""
    for address, source, length in zip(peer, own, _LENGTHS, strict=True):
        # Two addresses and not one, so that a longer route with an MTU may be added.
        network = ipaddress.ip_network(f"{address}/{length}", strict=False)
        yield f"route add {network} {device} src {source}{pinned}"
        yield f"neighbour add {address} lladdr {mac} {device} nud permanent"


def _host_mac(number: int) -> str:
    return mac_address(0x10 + number)
