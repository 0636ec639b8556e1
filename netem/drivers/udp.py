"""UDP sockets of a relay, and the errors that they bring up on the way."""

import errno
import os
import socket
from ipaddress import ip_address
from typing import Final, NamedTuple

from netem.errors import NetemError

__all__ = [
    "Address",
    "Target",
    "bound_socket",
    "closed_port",
    "connected_socket",
    "dropped_by",
    "headers",
    "resolve",
    "socket_address",
    "told_by_icmp",
]

_BUFFER: Final = 1024 * 1024
"""Asked of the kernel for each socket, so that a burst waits here and not in the sender's way."""
_HIGHEST_PORT: Final = 65_535
_ICMP_ERRORS: Final = frozenset(
    getattr(errno, name)
    for name in (
        "EACCES",
        "ECONNREFUSED",
        "ECONNRESET",
        "EHOSTDOWN",
        "EHOSTUNREACH",
        "EMSGSIZE",
        "ENETUNREACH",
        "ENONET",
        "ENOPROTOOPT",
        "EOPNOTSUPP",
        "EPROTO",
    )
    if hasattr(errno, name)  # not every system has them all
)


Address = tuple[str, int] | tuple[str, int, int, int]


def socket_address(host: str, port: int, scope: int) -> Address:
    return (host, port, 0, scope) if scope else (host, port)


class Target(NamedTuple):
    family: socket.AddressFamily
    host: str
    port: int
    scope: int = 0
    """Of a link-local address of IPv6, the number of the interface."""

    @property
    def address(self) -> Address:
        return socket_address(self.host, self.port, self.scope)


def resolve(address: tuple[str, int]) -> Target:
    host, port = address
    if not 0 <= port <= _HIGHEST_PORT:
        raise NetemError(f"{host}:{port}: no port; name one from 0 to {_HIGHEST_PORT}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise NetemError(f"{host}: {_reason(error)}; name an address such as 127.0.0.1") from error
    family, _, _, _, sockaddr = found[0]
    scope = sockaddr[3] if len(sockaddr) == 4 else 0
    return Target(family, str(sockaddr[0]), port, int(scope))


def bound_socket(address: tuple[str, int]) -> socket.socket:
    target = resolve(address)
    bound = _socket(target.family)
    try:
        bound.bind(target.address)
    except OSError as error:
        bound.close()
        raise NetemError(
            f"cannot listen on {target.host} port {target.port}: {_reason(error)}; "
            "listen on 127.0.0.1 port 0 for a free one"
        ) from error
    return bound


def connected_socket(target: Target) -> socket.socket:
    """It hears nobody but the target, and the ICMP errors about what was sent there."""
    connected = _socket(target.family)
    try:
        connected.connect(target.address)
    except OSError:
        connected.close()
        raise
    return connected


def closed_port(bound: socket.socket) -> None:
    """Keep the port, yet let the kernel answer that nobody is there.

    A connected socket hears its peer alone; this one's is itself. For all others the port is as
    good as closed: they are told "port unreachable".
    """
    host, port, *rest = bound.getsockname()
    if ip_address(host).is_unspecified:
        host = "127.0.0.1" if bound.family == socket.AF_INET else "::1"
    bound.connect((host, port, *rest))


def told_by_icmp(error: OSError) -> bool:
    """Whether this call was given the news of an earlier datagram, and did nothing else.

    Linux has an error of its own for each kind of ICMP "unreachable", of both families, and
    EMSGSIZE for a datagram that was too big for some router on the way.
    """
    return error.errno in _ICMP_ERRORS


def dropped_by(bound: socket.socket) -> int:
    """Datagrams that the kernel had no room for in this socket, where it tells: on Linux."""
    table = "/proc/net/udp" if bound.family == socket.AF_INET else "/proc/net/udp6"
    inode = str(os.fstat(bound.fileno()).st_ino)
    try:
        with open(table, encoding="ascii") as lines:
            # proc(5): the inode is the tenth column, the drops are the last.
            return next((int(row[-1]) for row in map(str.split, lines) if row[9] == inode), 0)
    except (OSError, IndexError, ValueError):
        return 0


def headers(family: socket.AddressFamily) -> int:
    """Bytes that UDP and IP put before a payload."""
    return 28 if family == socket.AF_INET else 48


def _socket(family: socket.AddressFamily) -> socket.socket:
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.setblocking(False)
    for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        try:
            made.setsockopt(socket.SOL_SOCKET, buffer, _BUFFER)
        except OSError:
            break  # More than this system gives; its default does for voice.
    return made


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
