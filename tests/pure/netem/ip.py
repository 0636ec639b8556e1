"""IP packets made by hand, with checksums computed in another way than the code under test."""

from netem.link import Endpoint

__all__ = ["V4", "V6", "ipv4", "ipv6", "segment", "tcp", "udp", "zero_sum"]

V4 = (bytes([198, 18, 0, 2]), bytes([198, 18, 0, 1]))
V6 = (bytes.fromhex("fd00" + "00" * 13 + "02"), bytes.fromhex("fd00" + "00" * 13 + "01"))


def zero_sum(data: bytes) -> bool:
    """Whether the checksum in it is right.

    65,536 is 1 modulo 65,535, so the sum of the words is the whole as one number: it must be -0.
    """
    return int.from_bytes(data + b"\0" * (len(data) % 2)) % 65_535 == 0


def complement(data: bytes) -> bytes:
    rest = -int.from_bytes(data + b"\0" * (len(data) % 2)) % 65_535
    return rest.to_bytes(2)


def pseudo(source: bytes, destination: bytes, protocol: int, size: int) -> bytes:
    if len(source) == 4:
        return source + destination + bytes([0, protocol]) + size.to_bytes(2)
    return source + destination + size.to_bytes(4) + bytes([0, 0, 0, protocol])


def udp(source: Endpoint, destination: Endpoint, data: bytes = b"data") -> bytes:
    ports = source.port.to_bytes(2) + destination.port.to_bytes(2)
    start = ports + (8 + len(data)).to_bytes(2)
    return _summed(17, source, destination, start, data)


def tcp(source: Endpoint, destination: Endpoint, data: bytes = b"data") -> bytes:
    ports = source.port.to_bytes(2) + destination.port.to_bytes(2)
    start = ports + bytes(8) + bytes([0x50, 0x10, 0xFF, 0xFF])
    return _summed(6, source, destination, start, b"\0\0" + data)


def _summed(
    protocol: int, source: Endpoint, destination: Endpoint, start: bytes, rest: bytes
) -> bytes:
    assert isinstance(source.address, bytes)
    assert isinstance(destination.address, bytes)
    size = len(start) + 2 + len(rest)
    before = pseudo(source.address, destination.address, protocol, size)
    checksum = complement(before + start + b"\0\0" + rest)
    if protocol == 17 and checksum == b"\0\0":
        checksum = b"\xff\xff"
    return start + checksum + rest


def segment(packet: bytes, offset: int) -> bytes:
    """The transport's bytes behind their pseudo header: they sum up to zero."""
    if packet[0] >> 4 == 4:
        return (
            pseudo(packet[12:16], packet[16:20], packet[9], len(packet) - offset) + packet[offset:]
        )
    protocol = 17 if len(packet) - offset < 20 else 6
    return pseudo(packet[8:24], packet[24:40], protocol, len(packet) - offset) + packet[offset:]


def ipv4(
    payload: bytes,
    protocol: int = 17,
    *,
    source: bytes = V4[0],
    destination: bytes = V4[1],
    options: bytes = b"",
    fragment: int = 0,
) -> bytes:
    start = bytes([0x45 + len(options) // 4, 0])
    start += (20 + len(options) + len(payload)).to_bytes(2) + b"\x12\x34"
    start += fragment.to_bytes(2) + bytes([64, protocol])
    rest = source + destination + options
    return start + complement(start + b"\0\0" + rest) + rest + payload


def ipv6(
    payload: bytes,
    following: int = 17,
    *,
    source: bytes = V6[0],
    destination: bytes = V6[1],
) -> bytes:
    return (
        b"\x60\0\0\0"
        + len(payload).to_bytes(2)
        + bytes([following, 64])
        + source
        + destination
        + payload
    )
