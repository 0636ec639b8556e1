"""The checksum of the Internet protocols (RFC 1071), computed and updated."""

from struct import unpack_from
from typing import Final

__all__ = ["checksum", "pseudo_header", "updated"]

_ALL_ONES: Final = 0xFFFF


def _folded(total: int) -> int:
    while total > _ALL_ONES:
        total = (total & _ALL_ONES) + (total >> 16)
    return total


def checksum(data: bytes) -> int:
    padded = data + b"\0" * (len(data) % 2)
    return _ALL_ONES - _folded(sum(unpack_from(f">{len(padded) // 2}H", padded)))


def updated(old_checksum: int, old: int, new: int) -> int:
    """The checksum after one 16-bit word changed: equation 3 of RFC 1624."""
    return _ALL_ONES - _folded((_ALL_ONES - old_checksum) + (_ALL_ONES - old) + new)


def pseudo_header(source: bytes, destination: bytes, protocol: int, size: int) -> bytes:
    """What IPv6 puts before an upper-layer packet for its checksum (RFC 8200, section 8.1)."""
    return source + destination + size.to_bytes(4) + protocol.to_bytes(4)
