"""What every version of QUIC has in common (RFC 8999), which is all of an unknown one's header."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LONG_HEADER", "Invariants", "read_long_header"]

LONG_HEADER = 0x80
"""The bit of the first byte that says so."""

_FIXED_SIZE = 6
"""The first byte, the version, the length of the Destination Connection ID."""


class Invariants(NamedTuple):
    """A long header as RFC 8999 section 5.1 has it; connection IDs may have up to 255 bytes."""

    version: int
    destination_cid: bytes
    source_cid: bytes


def read_long_header(data: bytes) -> Invariants | None:
    """None for a short header, and for what ends before its connection IDs do."""
    if len(data) < _FIXED_SIZE or not data[0] & LONG_HEADER:
        return None
    middle = _FIXED_SIZE + data[5]
    if len(data) <= middle:
        return None
    end = middle + 1 + data[middle]
    if len(data) < end:
        return None
    version = int.from_bytes(data[1:5])
    return Invariants(version, data[_FIXED_SIZE:middle], data[middle + 1 : end])
