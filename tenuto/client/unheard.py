"""How much of what came is still to be heard, told from what the listener said."""

from __future__ import annotations

from tenuto.media import FRAME_DURATION

__all__ = ["Unheard"]

_KEPT = 0.5
"""Seconds of what is still to be heard that no first attempt waits for."""


class Unheard:
    """A listener that plays in real time from the frame on that it named."""

    def __init__(self) -> None:
        self._heard: tuple[int, float] | None = None

    def heard(self, sequence: int, now: float) -> None:
        self._heard = sequence, now

    def seconds(self, next: int, now: float) -> float:
        """Of what came below frame `next`, less some for safety; 0 where it never said."""
        if self._heard is None:
            return 0.0
        sequence, at = self._heard
        ahead = (next - sequence - 1) * FRAME_DURATION
        return max(0.0, ahead - (now - at) - _KEPT)
