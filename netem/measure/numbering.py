"""What the packets of a measurement carry: their number, in a way that survives damage.

A packet in which a bit was turned is damaged, not lost, and which one it was can still be read:
the number is there three times, and a checksum of our own says whether all is well.
"""

import struct
import zlib
from typing import Final, NamedTuple

__all__ = ["SMALLEST", "Numbered", "pack", "unpack"]

_COPIES: Final = 3
_COPY: Final = struct.Struct("!4sIQ")
_CHECKSUM: Final = struct.Struct("!I")
_MAGIC: Final = b"NMs1"
_SEED: Final = zlib.crc32(_MAGIC)
SMALLEST: Final = _CHECKSUM.size + _COPIES * _COPY.size
"""Bytes of the smallest payload."""
_FILLER: Final = bytes(range(256)) * 256


class Numbered(NamedTuple):
    run: int
    sequence: int
    intact: bool


def pack(run: int, sequence: int, size: int) -> bytes:
    """A payload of `size` bytes."""
    body = _COPY.pack(_MAGIC, run, sequence) * _COPIES + _FILLER[: size - SMALLEST]
    return _CHECKSUM.pack(zlib.crc32(body, _SEED)) + body


def unpack(payload: bytes) -> Numbered | None:
    """None if this is no packet of a measurement, or damaged beyond reading."""
    if len(payload) < SMALLEST:
        return None
    body = payload[_CHECKSUM.size :]
    intact = _CHECKSUM.unpack_from(payload)[0] == zlib.crc32(body, _SEED)
    copy = body[: _COPY.size] if intact else _majority(body)
    magic, run, sequence = _COPY.unpack(copy)
    return Numbered(run, sequence, intact) if magic == _MAGIC else None


def _majority(body: bytes) -> bytes:
    """Bit by bit, what two of three copies say."""
    first, second, third = (
        int.from_bytes(body[at * _COPY.size : (at + 1) * _COPY.size]) for at in range(_COPIES)
    )
    return (first & second | second & third | first & third).to_bytes(_COPY.size)
