"""Another rate, by the library soxr (the extra `audio`)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tenuto.errors import ErrorCode, RequestError

__all__ = ["Resampler", "resampled_length"]

_Samples = NDArray[np.float32]


def resampled_length(samples: int, source: int, target: int) -> int:
    """What so many samples come to at another rate, rounded once."""
    return round(Fraction(samples * target, source))


class Resampler:
    """Samples of shape (n, channels) in and out, as floats; whole streams keep their length.

    Raises `RequestError(UNSUPPORTED_AUDIO)` where soxr is not installed.
    """

    def __init__(self, source: int, target: int, channels: int) -> None:
        try:
            import soxr  # an extra
        except ImportError:
            raise RequestError(
                ErrorCode.UNSUPPORTED_AUDIO,
                f"audio of {source} Hz cannot become {target} Hz here: soxr is not installed",
                remedy="pip install 'tenuto[audio]' on the server",
            ) from None
        self._rates = source, target
        self._channels = channels
        self._stream = soxr.ResampleStream(source, target, channels, "float32", "HQ")
        self._taken = 0
        self._given = 0

    def push(self, samples: _Samples) -> _Samples:
        """What is settled by now: the filter looks some milliseconds ahead."""
        self._taken += len(samples)
        return self._give(self._stream.resample_chunk(samples))

    def finish(self) -> _Samples:
        """The rest, to `resampled_length` of what was pushed, to the sample."""
        rest = self._give(
            self._stream.resample_chunk(np.zeros((0, self._channels), np.float32), last=True)
        )
        missing = resampled_length(self._taken, *self._rates) - self._given
        self._given += missing
        return np.concatenate([rest, np.zeros((missing, self._channels), np.float32)])

    def _give(self, made: _Samples) -> _Samples:
        made = made[: resampled_length(self._taken, *self._rates) - self._given]
        self._given += len(made)
        return made
