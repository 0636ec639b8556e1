"""Packets that any QUIC server answers without keeping state: Version Negotiation (RFC 9000 6)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["ProbeId", "read_answer", "version_probe"]

_RESERVED = 0x1A2A3A4A
"""A version of the form 0x?a?a?a?a, which exists to be negotiated (RFC 9000 section 15)."""

_HEAD = struct.Struct("!BIB")
_ID = struct.Struct("!4sHH")


@dataclass(frozen=True, slots=True)
class ProbeId:
    """Eight bytes that travel as our connection ID and come back; `nonce` has four."""

    nonce: bytes
    flow: int
    number: int

    def encode(self) -> bytes:
        return _ID.pack(self.nonce, self.flow, self.number)


def version_probe(probe: ProbeId, size: int) -> bytes:
    """A datagram of `size` bytes, padded with zeros: what an Initial of that version may hold."""
    connection_id = probe.encode()
    length = bytes([len(connection_id)])
    head = _HEAD.pack(0xC0, _RESERVED, len(connection_id)) + connection_id + length + connection_id
    return head.ljust(size, b"\0")


def read_answer(data: bytes, nonce: bytes) -> ProbeId | None:
    """Which probe this answers; None for whatever else it is (RFC 9000 section 17.2.1)."""
    if len(data) < _HEAD.size + _ID.size + 1:
        return None
    first, version, size = _HEAD.unpack_from(data)
    if not first & 0x80 or version != 0 or size != _ID.size:
        return None
    echoed, flow, number = _ID.unpack_from(data, _HEAD.size)
    return ProbeId(echoed, flow, number) if echoed == nonce else None
