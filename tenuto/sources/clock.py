"""A live source whose every frame says when it was due: for measuring what it takes to arrive."""

from __future__ import annotations

import asyncio
import itertools
import struct
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import ClassVar

from tenuto.media import FRAMES_PER_SECOND, AudioFormat

__all__ = ["ClockSource", "clock_payload", "read_clock"]

_STAMP = struct.Struct(">IQ")


def clock_payload(number: int, due: int, size: int) -> bytes:
    """Frame `number`, due at `due` nanoseconds of CLOCK_MONOTONIC: both, then silence."""
    return _STAMP.pack(number, due).ljust(size, b"\0")


def read_clock(payload: bytes) -> tuple[int, int]:
    """Number and due time of a payload; ValueError if it is none of a clock source."""
    if len(payload) < _STAMP.size or any(payload[_STAMP.size :]):
        raise ValueError(f"a payload of {len(payload)} bytes is none of a clock source")
    number, due = _STAMP.unpack_from(payload)
    return number, due


@dataclass(frozen=True, slots=True)
class ClockSource:
    """`frames` frames (None: endless), the first one due at once, each other 20 ms after it.

    None is given before it is due. One that is given late moves no other: the schedule is
    absolute, by a clock that is the same for every process of the machine.
    """

    frames: int | None = None
    format: ClassVar[AudioFormat] = AudioFormat()

    @property
    def kind(self) -> str:
        return "clock"

    @property
    def pausable(self) -> bool:
        return False

    @property
    def patience(self) -> float | None:
        return None

    async def stream(self) -> AsyncGenerator[bytes, None]:
        size, start = self.format.frame_size, time.monotonic_ns()
        for number in itertools.count() if self.frames is None else range(self.frames):
            due = start + number * 1_000_000_000 // FRAMES_PER_SECOND
            # More than once: a loop with coarse timers may wake up early.
            while (left := due - time.monotonic_ns()) > 0:  # noqa: ASYNC110
                await asyncio.sleep(left * 1e-9)
            yield clock_payload(number, due, size)
