"""How many may attach a second: a token bucket, and a queue of slots for who came too early."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from tenuto.errors import OperatorError

__all__ = ["MAX_SLOTS", "MAX_WAIT", "SLOT_KEPT", "AttachRate", "Refused"]

MAX_WAIT = 30.0
"""Seconds to come that are given away as slots; whoever comes beyond is told to wait so long."""

SLOT_KEPT = 2.0
"""Seconds for which a slot is kept for who is late; then it is anybody's."""

MAX_SLOTS = 10_000
"""Slots that are kept at once; whoever comes beyond is told to wait as long as the last."""

_ROUNDING = 1e-6
"""Of a token: what sums of floats may be short of."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Come back after `wait` seconds. `first` of its episode: worth a log line."""

    wait: float
    first: bool


class AttachRate:
    """`burst` at once, then `rate` a second.

    The refused are given the slots that follow, one every 1/rate seconds. A slot is paid for when
    it is promised, so no newcomer takes it: it is kept for its address, whoever there comes first
    at its time or soon after. Half of all slots at most are one address's; who is refused beyond
    that is given a time and no slot. An episode ends when no slot is promised any more and a
    tenth of the burst is free.
    """

    def __init__(self, rate: float, burst: float) -> None:
        if not (math.isfinite(rate) and rate > 0):
            raise OperatorError(f"attach rate = {rate:g}", remedy="give a number a second above 0")
        if not (math.isfinite(burst) and burst >= 1):
            raise OperatorError(f"attach burst = {burst:g}", remedy="give a number from 1 on")
        self.rate = rate
        self.burst = burst
        self.refused = 0
        self._most = min(MAX_SLOTS, max(2, math.ceil(rate * MAX_WAIT)))
        self._tokens = float(burst)
        """Below 0: promised."""
        self._at = -math.inf
        self._promised: deque[tuple[float, str]] = deque()
        self._slots: dict[str, deque[float]] = {}
        self.promised = 0
        """Slots that are kept for somebody."""
        self._last_told = -math.inf
        self._told = False

    def admit(self, now: float, address: str = "") -> Refused | None:
        """None for who may attach. Time may stand still, and does not run backwards."""
        now = max(now, self._at)
        self._refill(now)
        if self._claims(now, address):
            return None
        if self._tokens >= 1 - _ROUNDING:
            self._tokens = max(0.0, self._tokens - 1)
            return None
        self.refused += 1
        first, self._told = not self._told, True
        return Refused(self._promise(now, address) - now, first)

    def _claims(self, now: float, address: str) -> bool:
        slots = self._slots.get(address)
        if not slots or slots[0] > now + _ROUNDING / self.rate:
            return False
        self._take_first(slots, address)
        return True

    def _promise(self, now: float, address: str) -> float:
        slot = now + (1 - self._tokens) / self.rate
        held = len(self._slots.get(address, ()))
        full = self.promised >= self._most or held >= self._most / 2
        if full or slot > now + MAX_WAIT:
            # Times without a slot follow each other too, or all of these would come at once.
            slot = max(slot, self._last_told + 1 / self.rate)
            self._last_told = min(slot, now + MAX_WAIT)
            return self._last_told
        self._tokens -= 1
        self.promised += 1
        self._promised.append((slot, address))
        self._slots.setdefault(address, deque()).append(slot)
        self._last_told = slot
        return slot

    def _refill(self, now: float) -> None:
        if now > self._at:
            self._tokens = min(self.burst, self._tokens + (now - self._at) * self.rate)
            self._at = now
        while self._promised and self._promised[0][0] + SLOT_KEPT < now:
            self._release(*self._promised.popleft())
        if not self._slots and self._tokens >= max(1.0, 0.1 * self.burst):
            self._told = False

    def _release(self, slot: float, address: str) -> None:
        slots = self._slots.get(address)
        if slots is None or slots[0] > slot:
            return  # It was claimed.
        self._take_first(slots, address)
        self._tokens = min(self.burst, self._tokens + 1)

    def _take_first(self, slots: deque[float], address: str) -> None:
        slots.popleft()
        self.promised -= 1
        if not slots:
            del self._slots[address]
