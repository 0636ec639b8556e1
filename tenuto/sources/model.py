"""A source that keeps the pace of a speech model, stalls and all: for benches and tests."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field

from tenuto.errors import SourceError
from tenuto.media import AudioFormat
from tenuto.sources.base import MAX_RUN_SIZE
from tenuto.sources.counting import COUNTERS, Counters, numbered_run

__all__ = ["ModelSource"]


@dataclass(frozen=True, slots=True)
class ModelSource:
    """`seconds` of numbered frames, given in steps of `step` seconds of audio.

    The first step is ready after `first_token` seconds, each other one `step * rtf` after
    the one before it, varied by up to `jitter` of that either way. Before every
    `stall_every`-th step (0: none) it takes `stall` seconds more; after `fail_after` steps
    it fails. The first `skip` frames are left out as if the rest were all there is: it begins
    with `first_token` again. Steps are due on an absolute schedule, so that late wake-ups do
    not add up; a model that was held back by its listeners goes on from there, no faster.
    """

    seconds: float = 10.0
    format: AudioFormat = field(default_factory=AudioFormat)
    step: float = 0.16
    first_token: float = 0.2
    rtf: float = 0.25
    stall_every: int = 0
    stall: float = 0.0
    fail_after: int | None = None
    jitter: float = 0.0
    seed: int = 0
    skip: int = 0
    counters: Counters = field(default_factory=lambda: COUNTERS)

    @property
    def kind(self) -> str:
        return "model"

    @property
    def pausable(self) -> bool:
        return True

    @property
    def patience(self) -> float | None:
        return None  # It stalls where a test says so.

    def costs(self, steps: int) -> Iterator[float]:
        """Seconds that each of the first steps takes; the same for the same seed."""
        chance = random.Random(self.seed)
        for number in range(steps):
            varied = self.step * self.rtf * (1 + self.jitter * chance.uniform(-1, 1))
            stalls = self.stall_every and number and number % self.stall_every == 0
            yield (varied if number else self.first_token) + (self.stall if stalls else 0)

    async def stream(self) -> AsyncGenerator[bytes, None]:
        counters, frame = self.counters, self.format.frame_size
        counters.started += 1
        counters.running += 1
        try:
            clock = asyncio.get_running_loop()
            due, position = clock.time(), self.skip * frame
            for cost, size in zip(self.costs(self._steps), self._sizes(), strict=True):
                # Held back for longer than this step takes, it has it ready.
                due = max(due, clock.time() - cost) + cost
                await asyncio.sleep(due - clock.time())
                for start in range(position, position + size, MAX_RUN_SIZE):
                    end = min(start + MAX_RUN_SIZE, position + size)
                    counters.produced += end // frame - start // frame
                    yield numbered_run(start, end - start, frame)
                position += size
            if self.fail_after is not None and self.fail_after == self._steps:
                raise SourceError(f"told to fail after {self.fail_after} steps")
        finally:
            counters.running -= 1
            counters.finished += 1

    @property
    def _whole(self) -> int:
        """Samples per channel in all that is given."""
        left_out = self.skip * self.format.samples_per_frame
        return max(0, round(self.seconds * self.format.rate) - left_out)

    @property
    def _samples(self) -> int:
        """Samples per channel in a step."""
        return max(1, round(self.step * self.format.rate))

    @property
    def _steps(self) -> int:
        steps = -(-self._whole // self._samples)
        return steps if self.fail_after is None else min(steps, self.fail_after)

    def _sizes(self) -> Iterator[int]:
        for number in range(self._steps):
            samples = min(self._samples, self._whole - number * self._samples)
            yield samples * self.format.bytes_per_sample
