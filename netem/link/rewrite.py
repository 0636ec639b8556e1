"""What a NAT does to an IP packet: the client's port becomes another one."""

from typing import Final

from netem.link.checksum import updated
from netem.link.headers import UDP, transport
from netem.profile import Way

__all__ = ["with_client_port"]

_CHECKSUM_OFFSET: Final = {17: 6, 6: 16}


def with_client_port(packet: bytes, way: Way, port: int) -> bytes:
    """The packet with `port` at the client's end and its checksum updated (RFC 1624).

    A packet in which no port can be seen comes back as it is.
    """
    header = transport(packet)
    if header is None:
        return packet
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
