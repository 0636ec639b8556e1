"""Variable-length integers of RFC 9000 section 16."""

from __future__ import annotations

from bisect import bisect_right

__all__ = ["MAX_VARINT", "decode_varint", "encode_varint", "varint_size"]

MAX_VARINT = (1 << 62) - 1
_BOUNDS = (1 << 6, 1 << 14, 1 << 30)
"""From here on 1, 2 or 4 bytes are too few."""


def encode_varint(value: int) -> bytes:
    """The shortest encoding; `ValueError` outside 0 to 2**62 - 1."""
    if value < 0 or value > MAX_VARINT:
        raise ValueError(f"{value} does not fit a variable-length integer")
    exponent = bisect_right(_BOUNDS, value)
    length = 1 << exponent
    return (value | exponent << (8 * length - 2)).to_bytes(length, "big")


def varint_size(first_byte: int) -> int:
    """Bytes in all, told by the first one."""
    return 1 << (first_byte >> 6)


def decode_varint(data: bytes | bytearray | memoryview, offset: int) -> tuple[int, int] | None:
    """`(value, offset behind it)`, or None where `data` ends too early."""
    if offset >= len(data):
        return None
    size = varint_size(data[offset])
    end = offset + size
    if end > len(data):
        return None
    value = int.from_bytes(data[offset:end], "big")
    return value & ((1 << (8 * size - 2)) - 1), end
