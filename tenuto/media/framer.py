"""Byte runs of any length in, whole frames out: every sample in is a sample out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from tenuto.media.format import AudioFormat

__all__ = ["MAX_MARKS", "Framer", "Piece"]

MAX_MARKS = 64
"""Text offsets of one frame; of more the last are kept."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One frame's payload, not yet numbered; `samples` counts per channel."""

    payload: bytes
    samples: int
    marks: tuple[int, ...] = ()


class Framer:
    """Cuts a source's byte runs into frames and carries the remainder to the next run.

    It holds less than one frame between calls; `push` cuts lazily, so that a long run
    costs no second copy of itself. A stray fraction of a sample at the end cannot be
    played: it is dropped and counted in `stray_bytes`.
    """

    def __init__(self, format: AudioFormat) -> None:
        self.format = format
        self.stray_bytes = 0
        self._rest = b""
        self._marks: deque[int] = deque(maxlen=MAX_MARKS)

    def mark(self, text_offset: int) -> None:
        """Text at this offset (code points) begins to sound with the next byte pushed."""
        self._marks.append(text_offset)

    def push(self, run: bytes) -> Iterator[Piece]:
        """Yield each frame that `run` completes; exhaust it before the next call."""
        size = self.format.frame_size
        carried = len(self._rest)
        if carried + len(run) < size:
            self._rest += run
            return
        cut = size - carried
        yield self._piece(self._rest + run[:cut])
        while cut + size <= len(run):
            yield self._piece(run[cut : cut + size])
            cut += size
        self._rest = run[cut:]

    def finish(self) -> Piece | None:
        """The last partial frame with its true length, or None where nothing is left.

        Marks that no byte has followed stay for what is pushed next.
        """
        stray = len(self._rest) % self.format.bytes_per_sample
        self.stray_bytes += stray
        payload = self._rest[: len(self._rest) - stray]
        self._rest = b""
        return self._piece(payload) if payload else None

    def reformat(self, format: AudioFormat) -> Piece | None:
        """What is pushed from now on is of this format; returns what `finish` does."""
        tail = self.finish()
        self.format = format
        return tail

    def _piece(self, payload: bytes) -> Piece:
        marks = tuple(self._marks)
        self._marks.clear()
        return Piece(payload, len(payload) // self.format.bytes_per_sample, marks)
