"""Sources that break the rules of `tenuto.sources.Source`, one rule each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from tenuto.media import AudioFormat
from tenuto.sources.counting import numbered_run

__all__ = [
    "BadSource",
    "ClosesBadly",
    "FailsInMidFrame",
    "GivesAllAtOnce",
    "GivesNothing",
    "GivesOddBytes",
    "HogsTheLoop",
    "SwallowsCancellation",
]


@dataclass(slots=True)
class BadSource:
    """What they share. `entered` and `left` count how often `stream` began and ended."""

    format: AudioFormat = field(default_factory=AudioFormat)
    pausable: bool = True
    patience: float | None = None
    entered: int = 0
    left: int = 0

    @property
    def kind(self) -> str:
        return "bad"

    async def stream(self) -> AsyncGenerator[bytes, None]:
        self.entered += 1
        try:
            async for run in self.runs():
                yield run
        finally:
            self.left += 1

    async def runs(self) -> AsyncGenerator[bytes, None]:
        raise NotImplementedError
        yield b""

    def numbered(self, position: int, size: int) -> bytes:
        """Bytes of numbered frames, so that a listener can tell what it got."""
        return numbered_run(position, size, self.format.frame_size)


@dataclass(slots=True)
class FailsInMidFrame(BadSource):
    """After two and a half frames it raises `fault`, which is none of our errors."""

    fault: Exception = field(default_factory=lambda: ZeroDivisionError("in somebody's engine"))

    async def runs(self) -> AsyncGenerator[bytes, None]:
        yield self.numbered(0, self.format.frame_size * 5 // 2)
        raise self.fault


@dataclass(slots=True)
class GivesNothing(BadSource):
    """It neither yields nor ends, after `frames` whole frames."""

    frames: int = 0

    async def runs(self) -> AsyncGenerator[bytes, None]:
        if self.frames:
            yield self.numbered(0, self.frames * self.format.frame_size)
        await asyncio.Event().wait()


@dataclass(slots=True)
class GivesAllAtOnce(BadSource):
    """Ten minutes in one run: far more than MAX_RUN_SIZE."""

    seconds: float = 600.0

    async def runs(self) -> AsyncGenerator[bytes, None]:
        yield self.numbered(0, round(self.seconds * 50) * self.format.frame_size)


@dataclass(slots=True)
class GivesOddBytes(BadSource):
    """Runs of 333 bytes and, at the end, one byte that is no sample."""

    async def runs(self) -> AsyncGenerator[bytes, None]:
        for n in range(7):
            yield self.numbered(n * 333, 333)
            await asyncio.sleep(0)


@dataclass(slots=True)
class SwallowsCancellation(BadSource):
    """It goes on for `seconds` after it was told to end, and then ends as if nothing was."""

    seconds: float = 0.3
    cancelled: int = 0

    async def runs(self) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        yield self.numbered(0, self.format.frame_size)
        until: float | None = None
        while until is None or loop.time() < until:
            try:
                await asyncio.sleep(0.01 if until is not None else 3600)
            except asyncio.CancelledError:
                self.cancelled += 1
                until = until or loop.time() + self.seconds


@dataclass(slots=True)
class ClosesBadly(BadSource):
    """Its `finally` raises, when it is closed early and when it ends by itself."""

    frames: int | None = None

    async def runs(self) -> AsyncGenerator[bytes, None]:
        size, position = self.format.frame_size, 0
        try:
            while self.frames is None or position < self.frames * size:
                yield self.numbered(position, size)
                position += size
                await asyncio.sleep(0)
        finally:
            raise RuntimeError("the engine was gone already")


@dataclass(slots=True)
class HogsTheLoop(BadSource):
    """It gives empty runs for ever and never waits."""

    most: int = 100_000

    async def runs(self) -> AsyncGenerator[bytes, None]:
        for _ in range(self.most):
            yield b""
