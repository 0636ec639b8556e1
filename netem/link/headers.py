"""Where in an IP packet the header of UDP or TCP begins (RFC 791, RFC 8200)."""

from typing import Final, NamedTuple

__all__ = ["TCP", "UDP", "Transport", "quote", "transport", "upper_of_ipv6"]

TCP: Final = 6
UDP: Final = 17
_ICMP: Final = 1
_ICMPV6: Final = 58
_ICMP_HEADER: Final = 8
_ICMP_ERRORS: Final = frozenset({3, 4, 5, 11, 12})
"""Unreachable, source quench, redirect, time exceeded, parameter problem."""
_ICMPV6_QUERIES: Final = 128
"""RFC 4443, section 2.1: errors are below it."""
_IPV4_HEADER: Final = 20
_IPV6_HEADER: Final = 40
_FRAGMENT: Final = 44
_AUTHENTICATION: Final = 51
_EXTENSIONS: Final = frozenset({0, 43, 60, _FRAGMENT, _AUTHENTICATION})
"""Hop-by-hop options, routing, destination options, fragment, authentication."""
_LEAST: Final = {UDP: 8, TCP: 20}
"""Bytes of the header that must be there."""


class Transport(NamedTuple):
    protocol: int
    source: bytes
    destination: bytes
    offset: int
    """Of the UDP or TCP header."""


def transport(packet: bytes) -> Transport | None:
    """None for other protocols, for later fragments, and for what is cut short or no IP."""
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= _IPV4_HEADER:
        return _ipv4(packet)
    if version == 6 and len(packet) >= _IPV6_HEADER:
        return _ipv6(packet)
    return None


def _ipv4(packet: bytes) -> Transport | None:
    offset = (packet[0] & 0x0F) * 4
    later_fragment = (packet[6] & 0x1F) | packet[7]
    if later_fragment or offset < _IPV4_HEADER:
        return None
    return _checked(packet, packet[9], packet[12:16], packet[16:20], offset)


def _ipv6(packet: bytes) -> Transport | None:
    upper = upper_of_ipv6(packet)
    return (
        None if upper is None else _checked(packet, upper[0], packet[8:24], packet[24:40], upper[1])
    )


def upper_of_ipv6(packet: bytes) -> tuple[int, int] | None:
    """The protocol behind all extension headers and where its header begins.

    None for later fragments and for what is cut short.
    """
    following, offset = packet[6], _IPV6_HEADER
    # Every turn goes on by eight bytes at least, so the packet ends it.
    while following in _EXTENSIONS:
        header = packet[offset : offset + 8]
        if len(header) < 8:
            return None
        if following == _FRAGMENT:
            if header[2] | header[3] & 0xF8:
                return None
            size = 8
        elif following == _AUTHENTICATION:
            # RFC 4302: it alone counts in words of four bytes, less two.
            size = max(8, (header[1] + 2) * 4)
        else:
            size = (header[1] + 1) * 8
        following, offset = header[0], offset + size
    return following, offset


def _checked(
    packet: bytes, protocol: int, source: bytes, destination: bytes, offset: int
) -> Transport | None:
    least = _LEAST.get(protocol)
    if least is None or len(packet) < offset + least:
        return None
    return Transport(protocol, source, destination, offset)


def quote(packet: bytes) -> int | None:
    """Where in an ICMP error the packet begins that it is about; None for all else."""
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= _IPV4_HEADER:
        offset, fragment = (packet[0] & 0x0F) * 4, packet[6] & 0x3F | packet[7]
        if packet[9] != _ICMP or fragment or len(packet) < offset + _ICMP_HEADER:
            return None
        return offset + _ICMP_HEADER if packet[offset] in _ICMP_ERRORS else None
    if version == 6 and len(packet) >= _IPV6_HEADER + _ICMP_HEADER and packet[6] == _ICMPV6:
        errs = packet[_IPV6_HEADER] < _ICMPV6_QUERIES
        return _IPV6_HEADER + _ICMP_HEADER if errs else None
    return None
