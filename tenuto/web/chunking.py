"""How many frames may travel together."""

from __future__ import annotations

__all__ = ["FRAME_OVERHEAD", "MAX_CHUNK", "fitting"]

FRAME_OVERHEAD = 5
"""Bytes of a FRAME record beside its payload, at most."""

MAX_CHUNK = 12288
"""Bytes of frames that wait for each other, and of one write to TCP: one TLS record, for
which a connection's buffers grow and stay as large.
"""

_BESIDE = 512
"""Bytes left in a chunk for what goes with its frames: a header, GAP, MARK, END."""


def fitting(frame_size: int) -> int:
    """Full frames of so many bytes that one chunk may hold, one at least."""
    return max(1, (MAX_CHUNK - _BESIDE) // (frame_size + FRAME_OVERHEAD))
