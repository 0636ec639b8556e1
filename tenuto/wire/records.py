"""Records as values. Sequences are full 64-bit numbers here, 16 bits only in bytes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from tenuto.media import AudioFormat, Frame

__all__ = [
    "MAX_BODY_SIZE",
    "MAX_GAP",
    "MAX_MARKS",
    "MAX_NOTICE_SIZE",
    "MAX_SKIPPED_SIZE",
    "MEDIA_TYPE",
    "VERSION",
    "Copy",
    "End",
    "Format",
    "Gap",
    "Keepalive",
    "Mark",
    "Notice",
    "Record",
    "RecordType",
    "Unknown",
]

VERSION = 1
MEDIA_TYPE = "application/vnd.tenuto.records"

MAX_BODY_SIZE = 16383
"""Bytes in the body of a record we know: a length of two bytes."""

MAX_MARKS = 64
"""Text offsets that a decoder gives to one frame; of more it keeps the last."""

MAX_NOTICE_SIZE = 4096
"""Bytes of JSON in a NOTICE."""

MAX_GAP = 1 << 32
"""Frames in one GAP; two years and eight months."""

MAX_SKIPPED_SIZE = 1 << 24
"""Bytes in the body of an unknown record; it is skipped without being held."""


class RecordType(IntEnum):
    KEEPALIVE = 0
    FORMAT = 1
    FRAME = 2
    COPY = 3
    GAP = 4
    MARK = 5
    NOTICE = 6
    END = 7


@dataclass(frozen=True, slots=True)
class Keepalive:
    """A sign of life of one byte; never audio."""


@dataclass(frozen=True, slots=True)
class Format:
    """What the frames behind it are.

    `sequence` is that of the next frame and `epoch_base` the first of its epoch, both in
    full. `chunk_frames` is how many frames arrive together: silence of that length is
    normal.
    """

    audio: AudioFormat
    sequence: int
    epoch: int = 0
    epoch_base: int = 0
    format_id: int = 0
    chunk_frames: int = 1


@dataclass(frozen=True, slots=True)
class Copy:
    """A redundant copy of an earlier frame, in the format named by `format_id`."""

    sequence: int
    format_id: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Gap:
    """`count` frames from `sequence` on will never come."""

    sequence: int
    count: int


@dataclass(frozen=True, slots=True)
class Mark:
    """The text at `text_offset` (code points) begins to sound in frame `sequence`."""

    sequence: int
    text_offset: int


@dataclass(frozen=True, slots=True)
class Notice:
    """A message for the client's logic as JSON text: throttle, draining, error."""

    json: str


@dataclass(frozen=True, slots=True)
class End:
    """The only proof of completeness: all frames and samples of the epoch from its base."""

    frames: int
    samples: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """A record of a later version, skipped: its type and the size of its body."""

    type: int
    size: int


Record = Keepalive | Format | Frame | Copy | Gap | Mark | Notice | End | Unknown
