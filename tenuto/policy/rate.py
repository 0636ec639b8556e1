"""How many may attach a second: a token bucket, and a queue of slots for who came too early."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tenuto.errors import OperatorError

__all__ = ["MAX_WAIT", "AttachRate", "Refused"]

MAX_WAIT = 30.0
"""Seconds to come that are given away as slots; whoever comes beyond is told to wait so long."""


_ROUNDING = 1e-6
"""Of a token: what sums of floats may be short of."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Come back after `wait` seconds. `first` of its episode: worth a log line."""

    wait: float
    first: bool


class AttachRate:
    """`burst` at once, then `rate` a second.

    The refused are given the slots that follow, one every 1/rate seconds, so that they come back
    one after the other and find a token each. No slot is kept for anybody by name: nothing is
    remembered of a client, and the queue is one number. An episode ends when its last slot has
    passed and a tenth of the burst is free.
    """

    def __init__(self, rate: float, burst: float) -> None:
        if not (math.isfinite(rate) and rate > 0):
            raise OperatorError(f"attach rate = {rate:g}", remedy="give a number a second above 0")
        if not (math.isfinite(burst) and burst >= 1):
            raise OperatorError(f"attach burst = {burst:g}", remedy="give a number from 1 on")
        self.rate = rate
        self.burst = burst
        self.refused = 0
        self._tokens = float(burst)
        self._at = -math.inf
        self._last_slot = -math.inf
        self._told = False

    def admit(self, now: float) -> Refused | None:
        """None for who may attach. Time may stand still, and does not run backwards."""
        now = max(now, self._at)
        self._refill(now)
        if self._tokens >= 1 - _ROUNDING:
            self._tokens = max(0.0, self._tokens - 1)
            return None
        self.refused += 1
        first, self._told = not self._told, True
        missing = (1 - self._tokens) / self.rate
        slot = max(now + missing, self._last_slot + 1 / self.rate)
        self._last_slot = min(slot, now + MAX_WAIT)
        return Refused(self._last_slot - now, first)

    def _refill(self, now: float) -> None:
        if now > self._at:
            self._tokens = min(self.burst, self._tokens + (now - self._at) * self.rate)
            self._at = now
        if now > self._last_slot and self._tokens >= max(1.0, 0.1 * self.burst):
            self._told = False
