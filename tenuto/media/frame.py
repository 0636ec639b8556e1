"""One frame of audio, numbered when it was produced."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Frame"]


@dataclass(frozen=True, slots=True)
class Frame:
    """Up to 20 ms of audio.

    `sequence` is the full 64-bit number, `samples` counts per channel (a session's last
    frame may be short), and `marks` are offsets in code points of the text whose sound
    begins in this frame.
    """

    sequence: int
    payload: bytes
    samples: int
    marks: tuple[int, ...] = ()
