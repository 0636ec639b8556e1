"""Sounds to lose frames of: a sine, and something like a voice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["largest_jump", "signal_to_error", "sine", "voiced"]


def sine(frequency: float, seconds: float, rate: int = 16_000) -> NDArray[np.int16]:
    """Shape (samples, 1), a quarter of full scale."""
    time = np.arange(round(seconds * rate)) / rate
    return _column(8000 * np.sin(2 * np.pi * frequency * time))


def voiced(seed: int, seconds: float, rate: int = 16_000) -> NDArray[np.int16]:
    """Harmonics of 90 to 220 Hz with vibrato and changing weights, and some noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * rate)) / rate
    pitch = rng.uniform(90, 220) * (1 + 0.015 * np.sin(2 * np.pi * 5 * time + rng.uniform(0, 6)))
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    sound = np.zeros_like(time)
    for harmonic in range(1, 13):
        swell = 1 + 0.3 * np.sin(2 * np.pi * rng.uniform(0.5, 2) * time + rng.uniform(0, 6))
        weight = rng.uniform(0.3, 1) / harmonic
        sound += weight * swell * np.sin(harmonic * phase + rng.uniform(0, 6))
    sound += rng.normal(0, 0.02, len(time))
    return _column(sound / np.abs(sound).max() * 12_000)


def _column(values: NDArray[np.float64]) -> NDArray[np.int16]:
    samples: NDArray[np.int16] = np.rint(values).astype(np.int16)[:, np.newaxis]
    return samples


def signal_to_error(wanted: NDArray[np.int16], got: NDArray[np.int16]) -> float:
    """In decibels; silence instead of the signal has 0."""
    signal = wanted.astype(float)
    error = signal - got.astype(float)
    return float(10 * np.log10((signal**2).sum() / max(1.0, (error**2).sum())))


def largest_jump(samples: NDArray[np.int16]) -> int:
    """From any sample to the next, in any channel."""
    return int(np.abs(np.diff(samples.astype(np.int32), axis=0)).max(initial=0))
