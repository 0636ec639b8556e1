"""Which addresses a bed takes, so that two beds in one namespace never take the same."""

import ipaddress
import json
import socket
from dataclasses import dataclass

from netem.errors import ImpairmentError
from netem.kernel.interfaces import ip
from netem.kernel.namespaces import Namespace

__all__ = ["Claim", "Subnet"]

COUNT = 512


@dataclass(frozen=True, slots=True)
class Subnet:
    """One /24 of 198.18.0.0/15, which RFC 2544 sets aside for benches, and one ULA prefix."""

    number: int

    @property
    def ipv4(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network(((198 << 24) + (18 << 16) + (self.number << 8), 24))

    @property
    def server4(self) -> str:
        return str(self.ipv4[1])

    @property
    def client4(self) -> str:
        return str(self.ipv4[2])

    @property
    def server6(self) -> str:
        return self._ipv6(1)

    @property
    def client6(self) -> str:
        return self._ipv6(2)

    def _ipv6(self, host: int) -> str:
        return str(ipaddress.IPv6Address(f"fd6e:6574:656d:{self.number:x}::{host}"))


class Claim:
    """A subnet that nobody else in this namespace uses or claims, until closed."""

    def __init__(self, namespace: Namespace) -> None:
        taken = _taken(namespace)
        for number in range(COUNT):
            subnet = Subnet(number)
            if any(subnet.ipv4.overlaps(other) for other in taken):
                continue
            # A name of the abstract kind belongs to a network namespace and ends with its socket:
            # a lock that nobody can leave behind.
            with namespace.entered():
                lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                lock.bind(f"\0netem/{number}")
            except OSError:
                lock.close()
                continue
            self.subnet = subnet
            self._lock = lock
            return
        raise ImpairmentError(
            "Every subnet of 198.18.0.0/15 is taken here; give the server a namespace of its own "
            "with --serve, or run this under `unshare -n`."
        )

    def close(self) -> None:
        self._lock.close()


def _taken(namespace: Namespace) -> list[ipaddress.IPv4Network]:
    networks = []
    for device in json.loads(ip(namespace, ["-json", "-4", "address", "show"]) or "[]"):
        for address in device.get("addr_info", []):
            if "local" in address:
                text = f"{address['local']}/{address['prefixlen']}"
                networks.append(ipaddress.IPv4Network(text, strict=False))
    return networks
