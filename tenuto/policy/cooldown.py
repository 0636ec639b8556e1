"""How long QUIC is left alone on a network where it failed."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["FIRST_COOL_DOWN", "LONGEST_COOL_DOWN", "CoolDown"]

FIRST_COOL_DOWN = 300.0
"""Seconds; each further failure doubles it."""

LONGEST_COOL_DOWN = 3600.0


@dataclass(frozen=True, slots=True)
class CoolDown:
    """`until` is a time of a clock that may have been set meanwhile, in seconds."""

    failures: int = 0
    until: float = 0.0

    def failed(self, now: float, first: float = FIRST_COOL_DOWN) -> CoolDown:
        """Once more. While it lasts already, this is the same failure: others met it too."""
        if self.left(now) > 0:
            return self
        seconds = min(max(first, LONGEST_COOL_DOWN), first * 2.0 ** min(self.failures, 32))
        return CoolDown(self.failures + 1, now + seconds)

    def left(self, now: float) -> float:
        """Seconds to wait; 0 where a time so far ahead shows that the clock was set back."""
        left = self.until - now
        return left if math.isfinite(left) and 0 < left <= LONGEST_COOL_DOWN else 0.0
