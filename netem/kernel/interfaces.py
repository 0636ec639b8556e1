"""Devices: TUN and veth, made in a given namespace and set up by `ip -batch`."""

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from netem.errors import ImpairmentError
from netem.kernel.namespaces import Namespace

if sys.platform == "linux":
    import fcntl
    import socket

__all__ = [
    "configure",
    "find_tool",
    "has_ipv6",
    "ip",
    "make_veth",
    "offloads_off",
    "open_tun",
    "set_sysctl",
    "transmit_drops",
]

MORE_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where the tools lie that are not on every user's path."""

TUN_DEVICE = "/dev/net/tun"
TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000

SIOCETHTOOL = 0x8946
# linux/ethtool.h, the old commands: every kernel has them, and no ethtool needs to be there.
_OFFLOADS = {
    "tso": 0x1F,
    "gso": 0x24,
    "gro": 0x2C,
    "ufo": 0x22,
    "sg": 0x19,
    "tx-checksum": 0x17,
    "rx-checksum": 0x15,
}

PATIENCE = 10.0
"""Seconds for one call of `ip`."""


def find_tool(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=MORE_FOLDERS)


def ip(
    namespace: Namespace, arguments: Sequence[str], *, batch: str = "", fds: Sequence[int] = ()
) -> str:
    """What `ip` printed, run in there with `fds` open; its own words are the error."""
    tool = find_tool("ip")
    if tool is None:
        raise ImpairmentError(
            "There is no `ip` here: install iproute2 (package iproute2 or iproute), or use the "
            "relay driver, which needs none, for UDP."
        )
    try:
        with namespace.entered():
            done = subprocess.run(
                [tool, *arguments],
                input=batch,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
                pass_fds=fds,
                env={**os.environ, "LC_ALL": "C"},
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ImpairmentError(f"`ip {' '.join(arguments)}` failed: {error}.") from None
    if done.returncode != 0:
        reason = (done.stderr.strip() or f"status {done.returncode}").splitlines()
        if any("BusyBox" in line for line in reason):
            reason = ["this is BusyBox's, which cannot do it; install iproute2"]
        raise ImpairmentError(f"`ip {' '.join(arguments)}` failed: {'; '.join(reason[:2])}")
    return done.stdout


def configure(namespace: Namespace, lines: Iterable[str]) -> None:
    """Run each line as an `ip` command, in one process; the first that fails ends it."""
    batch = list(lines)
    for line in batch:
        if "\n" in line:
            raise ValueError(f"not one line: {line!r}")
    try:
        ip(namespace, ["-batch", "-"], batch="\n".join(batch) + "\n")
    except ImpairmentError as error:
        # "Command failed -:3" says which line it was.
        words, failed, number = str(error).rpartition("; Command failed -:")
        if not failed or not number.isdecimal():
            raise
        reason = words.partition("failed: ")[2]
        raise ImpairmentError(f"`ip {batch[int(number) - 1]}` failed: {reason}") from None


def open_tun(namespace: Namespace, name: str) -> int:
    """A descriptor that reads what is sent by the device and writes what it receives.

    Whole IP packets, not blocking. The device goes when the descriptor is closed.
    """
    fd = -1
    try:
        with namespace.entered():
            fd = os.open(TUN_DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            request = struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI)
            fcntl.ioctl(fd, TUNSETIFF, request)
    except OSError as error:
        if fd >= 0:
            os.close(fd)
        raise ImpairmentError(f"TUN is refused here ({TUN_DEVICE}: {error.strerror}).") from None
    return fd


def make_veth(near: Namespace, near_name: str, far: Namespace, far_name: str) -> None:
    """A pair of Ethernet devices, one in each; when either namespace goes, both go."""
    ip(
        near,
        ["link", "add", near_name, "type", "veth", "peer", "name", far_name, "netns", far.path],
        fds=[far.fd],
    )


def offloads_off(namespace: Namespace, name: str) -> None:
    """No packet above the MTU and no checksum left to hardware: a tap sees what a wire would.

    What a device does not have is passed over.
    """
    with namespace.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in _OFFLOADS.values():
            value = bytearray(struct.pack("II", command, 0))
            try:
                _ethtool(any_socket, name, value)
            except OSError:
                continue


def _ethtool(any_socket: "socket.socket", name: str, value: bytearray) -> None:
    import array

    # struct ifreq: the name, then a pointer to the command.
    buffer = array.array("B", value)
    address, _ = buffer.buffer_info()
    request = struct.pack("16sP16x", name.encode(), address)
    fcntl.ioctl(any_socket.fileno(), SIOCETHTOOL, request)


def set_sysctl(namespace: Namespace, key: str, value: str) -> None:
    """`key` is a path below /proc/sys/net, such as `ipv4/ip_forward`."""
    try:
        with namespace.entered():
            Path("/proc/sys/net", key).write_text(value)
    except OSError as error:
        raise ImpairmentError(f"net/{key} cannot be set to {value}: {error.strerror}.") from None


def has_ipv6(namespace: Namespace) -> bool:
    """Whether new devices there get to speak it."""
    try:
        with namespace.entered():
            return Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").read_text().strip() == "0"
    except OSError:
        return False


def transmit_drops(namespace: Namespace, name: str) -> int:
    """Packets that the device had no room for, because nobody fetched them in time."""
    with namespace.entered():
        text = Path("/proc/thread-self/net/dev").read_text()
    for line in text.splitlines():
        device, colon, counters = line.partition(":")
        if colon and device.strip() == name:
            # proc(5): receive has eight columns; of transmit: bytes packets errs drop
            return int(counters.split()[11])
    return 0
