"""The work of a peer: numbered frames, in the records and at the times of our own server."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from urllib.parse import parse_qs

__all__ = ["FRAME_SECONDS", "group_size", "payload", "schedule"]

FRAME_SECONDS = 0.020
_SIZE = 640
_TAG = b"\xf1\xf3\xf5\xf7"
_RECORD = struct.Struct(">BHH")


def payload(first: int, count: int) -> bytes:
    """Whole FRAME records of the counting source's frames from number `first` on."""
    # Type, a two-byte varint of the body's length, the sequence's lower 16 bits.
    return b"".join(
        _RECORD.pack(2, 0x4000 | (_SIZE + 2), number & 0xFFFF)
        + (struct.pack("<I", number) + _TAG) * (_SIZE // 8)
        for number in range(first, first + count)
    )


def schedule(group: int) -> Iterator[tuple[float, int, int]]:
    """Seconds after the request, first frame, number of frames: a lone frame at once, and then
    a group each time its last frame would have been played by a listener without a lead.
    """
    yield 0.0, 0, 1
    first = 1
    while True:
        yield (first + group - 1) * FRAME_SECONDS, first, group
        first += group


def group_size(query: str) -> int:
    """`chunk` of the query, as our server knows it."""
    return int(parse_qs(query)["chunk"][0])
