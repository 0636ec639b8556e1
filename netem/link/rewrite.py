"""What a NAT does to an IP packet: the client's port becomes another one."""

from typing import Final

from netem.link.checksum import updated
from netem.link.headers import UDP, Transport, quote, transport
from netem.profile import Way

__all__ = ["with_client_port"]

_CHECKSUM_OFFSET: Final = {17: 6, 6: 16}


def with_client_port(packet: bytes, way: Way, port: int) -> bytes:
    """The packet with `port` at the client's end and its checksum updated (RFC 1624).

    An ICMP error changes in the packet that it quotes (RFC 5508, section 4.2). A packet in which
    no port can be seen comes back as it is.
    """
    header = transport(packet)
    if header is None:
        at = quote(packet)
        return packet if at is None else _with_quoted_port(packet, at, way, port)
    return _with_port(packet, header, way, port)


def _with_quoted_port(packet: bytes, at: int, way: Way, port: int) -> bytes:
    quoted = packet[at:]
    header = transport(quoted)
    if header is None:
        return packet
    changed = _with_port(quoted, header, way.back, port)
    # Updated word by word: one that was wrong stays wrong.
    check = int.from_bytes(packet[at - 6 : at - 4])
    for word in range(0, len(quoted) - 1, 2):
        old, new = quoted[word : word + 2], changed[word : word + 2]
        if old != new:
            check = updated(check, int.from_bytes(old), int.from_bytes(new))
    return packet[: at - 6] + check.to_bytes(2) + packet[at - 4 : at] + changed


def _with_port(packet: bytes, header: Transport, way: Way, port: int) -> bytes:
    at = header.offset if way is Way.UP else header.offset + 2
    old = int.from_bytes(packet[at : at + 2])
    changed = bytearray(packet)
    changed[at : at + 2] = port.to_bytes(2)
    check = header.offset + _CHECKSUM_OFFSET[header.protocol]
    before = int.from_bytes(packet[check : check + 2])
    udp = header.protocol == UDP
    if not udp or before:
        # RFC 768: 0 says that there is no checksum; one that is 0 is sent as all ones.
        after = updated(before, old, port)
        changed[check : check + 2] = (after or (0xFFFF if udp else 0)).to_bytes(2)
    return bytes(changed)
