"""Whether live audio comes at the rate that it claims: 44.1 kHz labelled 22.05 is not speech."""

from __future__ import annotations

__all__ = ["LEAST_PACE", "MOST_PACE", "PACE_WINDOW", "PaceCheck"]

LEAST_PACE, MOST_PACE = 0.67, 1.5
PACE_WINDOW = 2.0
"""Seconds that are looked at together."""


class PaceCheck:
    """Count what a live source delivers; `delivered` tells of the first window that is off.

    A window begins with a delivery that is not counted, since it may have waited for long.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._samples = 0
        self._rate = 0

    def delivered(self, samples: int, rate: int, now: float) -> float | None:
        """Samples/s of the window that ends now, if they are off the announced `rate`."""
        if self._began is None or rate != self._rate:
            self._began, self._samples, self._rate = now, 0, rate
            return None
        self._samples += samples
        passed = now - self._began
        if passed < PACE_WINDOW:
            return None
        measured = self._samples / passed
        self._began, self._samples = now, 0
        return None if LEAST_PACE <= measured / rate <= MOST_PACE else measured
