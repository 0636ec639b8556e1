"""What is in a frame: its number, and when it was due at its sender."""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["FRAME", "FRAME_NANO", "HEADER", "frame"]

FRAME: Final = 640
"""Bytes: 20 ms of 16 kHz mono."""

FRAME_NANO: Final = 20_000_000

HEADER: Final = struct.Struct(">IQ")
"""The number, and nanoseconds of CLOCK_MONOTONIC, as the product's test source `clock` has it."""


def frame(number: int, due: int) -> bytes:
    """The payload of a frame that is due at `due` nanoseconds."""
    return HEADER.pack(number, due).ljust(FRAME, b"\0")
