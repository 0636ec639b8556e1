"""How alike a signal and its own past are, at each distance that may be a voice's period."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "Samples", "likeness", "mono", "periods"]

Samples: TypeAlias = NDArray[np.int16]
"""Shape (samples, channels)."""

Floats: TypeAlias = NDArray[np.float64]

# ITU-T G.711 Appendix I looks for 66 to 200 Hz; small speakers and children reach 400 Hz.
_SHORTEST = 0.0025
_LONGEST = 0.015


def periods(rate: int) -> tuple[int, int]:
    """The shortest and the longest period looked for, in samples."""
    return max(1, round(_SHORTEST * rate)), round(_LONGEST * rate)


def mono(samples: Samples) -> Floats:
    """The mean of all channels."""
    mixed: Floats = samples.mean(axis=1, dtype=np.float64)
    return mixed


def likeness(signal: Floats, length: int) -> Floats:
    """Normalised correlation of the first `length` samples with those at each distance.

    Distances run from 0 to the signal's length minus `length`. 0 where either is silent.
    """
    products = np.correlate(signal, signal[:length], "valid")
    sums = np.concatenate(([0.0], np.cumsum(signal * signal)))
    energies = sums[length:] - sums[:-length]
    # One step of a 16-bit sample is the least that counts as sound.
    scale = np.sqrt(np.maximum(energies * energies[0], float(length)))
    alike: Floats = products / scale
    return alike
