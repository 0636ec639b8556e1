"""A source whose every frame says its number: for tests and benches, not for listeners."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from tenuto.errors import ErrorCode, RequestError, SourceError
from tenuto.media import AudioFormat
from tenuto.sources.base import MAX_RUN_SIZE

__all__ = [
    "COUNTERS",
    "Counters",
    "CountingSource",
    "numbered_payload",
    "numbered_run",
    "read_index",
]

_INDEX = struct.Struct("<I")
# Higher than any index's bytes: a payload shifted by any count is no payload at all.
_TAG = b"\xf1\xf3\xf5\xf7"


def numbered_payload(index: int, size: int) -> bytes:
    """A frame's payload of `size` bytes: its index as 32 bits and a tag, over and over."""
    pattern = _INDEX.pack(index) + _TAG
    return (pattern * (size // len(pattern) + 1))[:size]


def numbered_run(position: int, size: int, frame: int) -> bytes:
    """`size` bytes from `position` on of a stream of numbered frames of `frame` bytes each."""
    first, skip = divmod(position, frame)
    last = (position + size - 1) // frame
    frames = b"".join(numbered_payload(n, frame) for n in range(first, last + 1))
    return frames[skip : skip + size]


def read_index(payload: bytes) -> int:
    """The index in a payload of at least 4 bytes, cut short or whole.

    Raises ValueError where any byte is not the one that was produced: shifted, mixed from
    two frames, or replaced.
    """
    if len(payload) < _INDEX.size:
        raise ValueError(f"a payload of {len(payload)} bytes holds no index")
    index: int = _INDEX.unpack_from(payload)[0]
    if payload != numbered_payload(index, len(payload)):
        raise ValueError(f"a payload that begins as frame {index} goes on as something else")
    return index


@dataclass(slots=True)
class Counters:
    """What all counting sources that share it did; `finished` counts `finally` blocks."""

    started: int = 0
    running: int = 0
    produced: int = 0
    finished: int = 0


COUNTERS = Counters()
"""Shared by every counting source of the process that was not given its own."""


@dataclass(slots=True)
class CountingSource:
    """`frames` numbered frames (None: endless) in runs of `run_size` bytes.

    `first_delay` and `delay` are seconds before the first run and between runs. After
    `fail_after` frames it raises `failure`; after `block_after` frames it never yields
    again. `produced` counts the frames whose last byte was yielded, and the `skip` ones that
    were left out at the beginning; `finished` turns true in the generator's `finally`.
    """

    frames: int | None = None
    format: AudioFormat = field(default_factory=AudioFormat)
    run_size: int = 640
    first_delay: float = 0.0
    delay: float = 0.0
    fail_after: int | None = None
    failure: Exception | None = None
    block_after: int | None = None
    skip: int = 0
    counters: Counters = field(default_factory=lambda: COUNTERS)
    produced: int = 0
    finished: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.run_size <= MAX_RUN_SIZE:
            raise RequestError(
                ErrorCode.BAD_REQUEST,
                f"runs of {self.run_size} bytes cannot be made",
                remedy=f"give 1 to {MAX_RUN_SIZE} bytes",
            )
        if self.format.frame_size < _INDEX.size:
            raise RequestError(ErrorCode.BAD_REQUEST, "a frame is too small for its number")

    @property
    def kind(self) -> str:
        return "counting"

    @property
    def pausable(self) -> bool:
        return True

    @property
    def patience(self) -> float | None:
        return None  # It blocks where a test says so.

    async def stream(self) -> AsyncGenerator[bytes, None]:
        counters = self.counters
        counters.started += 1
        counters.running += 1
        try:
            await asyncio.sleep(self.first_delay)
            self.produced = self.skip
            position, end = self.skip * self.format.frame_size, self._end()
            while end is None or position < end:
                size = self.run_size if end is None else min(self.run_size, end - position)
                run = numbered_run(position, size, self.format.frame_size)
                position += size
                self._count(position // self.format.frame_size)
                yield run
                await asyncio.sleep(self.delay)
            await self._misbehave()
        finally:
            counters.running -= 1
            counters.finished += 1
            self.finished = True

    def _end(self) -> int | None:
        stops = (self.frames, self.fail_after, self.block_after)
        known = [stop for stop in stops if stop is not None]
        return min(known) * self.format.frame_size if known else None

    def _count(self, produced: int) -> None:
        self.counters.produced += produced - self.produced
        self.produced = produced

    async def _misbehave(self) -> None:
        if self.fail_after is not None and self.fail_after == self.produced:
            raise self.failure or SourceError(f"told to fail after {self.fail_after} frames")
        if self.block_after is not None and self.block_after == self.produced:
            await asyncio.Event().wait()
