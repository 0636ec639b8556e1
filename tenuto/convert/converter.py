"""16-bit PCM of one rate and channel count to another."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tenuto.convert.mixing import mixing_matrix
from tenuto.convert.resampler import Resampler, resampled_length

__all__ = ["Converter", "Shape"]

_Samples = NDArray[np.float32]


class Shape(Protocol):
    """Rate and channels: an `AudioFormat`, or what a file has that no session could."""

    @property
    def rate(self) -> int: ...

    @property
    def channels(self) -> int: ...


class Converter:
    """Byte runs cut anywhere in, byte runs out; a fraction of a sample is carried.

    Where nothing is to be done, runs pass untouched. In between samples are floats: they
    are mixed down, resampled, mixed up, and rounded once. Mixing cannot clip; the ringing
    of the resampling filter beside a full-scale edge is clipped. Raises as `Resampler`.
    """

    def __init__(self, source: Shape, target: Shape) -> None:
        self.stray_bytes = 0
        """Dropped at the end: what was no whole sample of all channels."""
        self._rates = source.rate, target.rate
        self._size = 2 * source.channels
        self._rest = b""
        self._identity = (*self._rates, source.channels) == (*self._rates[::-1], target.channels)
        self._before: _Samples | None = None
        self._after: _Samples | None = None
        if target.channels < source.channels:
            self._before = mixing_matrix(source.channels, target.channels)
        elif target.channels > source.channels:
            self._after = mixing_matrix(source.channels, target.channels)
        self._resampler: Resampler | None = None
        if source.rate != target.rate:
            channels = min(source.channels, target.channels)
            self._resampler = Resampler(source.rate, target.rate, channels)

    def position(self, sample: int) -> int:
        """The output sample that stands for this one of the input."""
        return resampled_length(sample, *self._rates)

    def push(self, run: bytes) -> bytes:
        """What is settled by now."""
        if self._identity:
            return run
        if self._rest:
            run = self._rest + run
        size = len(run) - len(run) % self._size
        self._rest = run[size:]
        if not size:
            return b""
        samples = np.frombuffer(run, "<i2", size // 2).reshape(-1, self._size // 2)
        floats = samples.astype(np.float32)
        if self._before is not None:
            floats = _mix(floats, self._before)
        if self._resampler is not None:
            floats = self._resampler.push(floats)
        return self._render(floats)

    def finish(self) -> bytes:
        """The rest; push no more."""
        self.stray_bytes += len(self._rest)
        self._rest = b""
        return self._render(self._resampler.finish()) if self._resampler is not None else b""

    def _render(self, floats: _Samples) -> bytes:
        if self._after is not None:
            floats = _mix(floats, self._after)
        return np.clip(np.rint(floats), -32768, 32767).astype("<i2").tobytes()


def _mix(samples: _Samples, matrix: _Samples) -> _Samples:
    # Not `samples @ matrix.T`: the order of its additions depends on how the runs are cut,
    # and with it the last bit of a sum.
    mixed = np.zeros((len(samples), len(matrix)), np.float32)
    for channel, factors in enumerate(matrix.T):
        if factors.any():
            mixed += samples[:, channel : channel + 1] * factors
    return mixed
