"""A sine tone: the smallest source that can be checked sample by sample."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import numpy as np

from tenuto.errors import ErrorCode, RequestError
from tenuto.media import AudioFormat
from tenuto.sources.base import MAX_RUN_SIZE

__all__ = ["MAX_CHANNELS", "MAX_RATE", "MAX_SECONDS", "MIN_RATE", "ToneSource"]

MAX_SECONDS = 86_400.0
"""One day; a tone is for tests and for tuning."""

MIN_RATE, MAX_RATE = 8_000, 192_000
MAX_CHANNELS = 8

_FULL_SCALE = 32767
_RUNS_PER_SECOND = 10


@dataclass(frozen=True, slots=True)
class ToneSource:
    """`seconds` of a sine at `frequency` Hz, the same in every channel.

    `level` is the peak, 1.0 being full scale. The sample count is `seconds * rate`,
    rounded once; the first `skip` frames of 20 ms are left out. Raises `RequestError` for any
    argument out of its range.
    """

    frequency: float = 440.0
    seconds: float = 1.0
    rate: int = 16000
    channels: int = 1
    level: float = 0.5
    skip: int = 0
    format: AudioFormat = field(init=False)

    def __post_init__(self) -> None:
        _check("rate", self.rate, MIN_RATE, MAX_RATE, "Hz")
        _check("channels", self.channels, 1, MAX_CHANNELS, "channels")
        # Above half the rate the samples are those of another, lower tone.
        _check("frequency", self.frequency, 1, self.rate / 2, "Hz")
        _check("seconds", self.seconds, 0, MAX_SECONDS, "seconds")
        _check("level", self.level, 0, 1, "of full scale")
        object.__setattr__(self, "format", AudioFormat(self.rate, self.channels))

    @property
    def kind(self) -> str:
        return "tone"

    @property
    def pausable(self) -> bool:
        return True

    @property
    def patience(self) -> float | None:
        return 10.0

    @property
    def samples(self) -> int:
        """Samples per channel in the whole tone, those left out included."""
        return round(self.seconds * self.rate)

    async def stream(self) -> AsyncGenerator[bytes, None]:
        most = min(self.rate // _RUNS_PER_SECOND, MAX_RUN_SIZE // self.format.bytes_per_sample)
        begin = self.skip * self.format.samples_per_frame
        for first in range(begin, self.samples, most):
            yield self._run(first, min(most, self.samples - first))
            # Nothing here ever waits: without this a fast reader would own the event loop.
            await asyncio.sleep(0)

    def _run(self, first: int, count: int) -> bytes:
        # The phase is computed from the sample's own number, so that no error adds up from
        # run to run; the largest product, a day at 192 kHz, stays exact in 53 bits.
        index = np.arange(first, first + count, dtype=np.float64)
        phase = np.mod(self.frequency * index, self.rate) / self.rate
        wave = np.rint(np.sin(2 * np.pi * phase) * (self.level * _FULL_SCALE))
        return np.repeat(wave.astype("<i2"), self.channels).tobytes()


def _check(name: str, value: float, low: float, high: float, unit: str) -> None:
    if not low <= value <= high:
        raise RequestError(
            ErrorCode.BAD_REQUEST,
            f"a tone's {name} cannot be {value:g}",
            remedy=f"give {low:g} to {high:g} {unit}",
        )
