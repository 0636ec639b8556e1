"""What is in a frame: its number, and when it was due at its sender.

The layout of the product's test source `clock`, which a test holds it to. It is not imported from
there: each of the listeners would load what sources need, 16 MB.
"""

from __future__ import annotations

import struct
from typing import Final

from tenuto.media import FRAMES_PER_SECOND, AudioFormat

__all__ = ["FRAME", "FRAME_NANO", "HEADER", "frame"]

FRAME: Final = AudioFormat().frame_size
"""Bytes: 20 ms of 16 kHz mono."""

FRAME_NANO: Final = 1_000_000_000 // FRAMES_PER_SECOND

HEADER: Final = struct.Struct(">IQ")
"""The number, and nanoseconds of CLOCK_MONOTONIC."""


def frame(number: int, due: int) -> bytes:
    """The payload of a frame that is due at `due` nanoseconds."""
    return HEADER.pack(number, due).ljust(FRAME, b"\0")
