"""A middle box that looks at UDP: it blocks it, or lets only so much through."""

from collections import OrderedDict
from typing import Final

from netem.link.packet import Flow
from netem.profile import Police

__all__ = ["MAX_FLOWS", "FirstPackets", "TokenBucket"]

MAX_FLOWS: Final = 65_536
"""Flows whose packets are counted. Above it the one least recently seen is forgotten."""


class FirstPackets:
    """Lets the first packets of each flow pass, in one direction."""

    def __init__(self, allowed: int) -> None:
        self._allowed = allowed
        self._passed: OrderedDict[Flow, int] = OrderedDict()
        self.forgotten = 0
        """Flows that went to make room: should they come again, they are new."""

    def passes(self, flow: Flow) -> bool:
        if not self._allowed:
            return False
        passed = self._passed.pop(flow, 0)
        if len(self._passed) >= MAX_FLOWS:
            self._passed.popitem(last=False)
            self.forgotten += 1
        self._passed[flow] = min(self._allowed, passed + 1)
        return passed < self._allowed


class TokenBucket:
    """Full at the start; a packet for which there are not enough tokens takes none."""

    def __init__(self, police: Police, started: float) -> None:
        self._bytes_per_second = police.bits_per_second / 8.0
        self._burst = float(police.burst)
        self._tokens = self._burst
        self._filled = started

    def passes(self, size: int, now: float) -> bool:
        gained = (now - self._filled) * self._bytes_per_second
        self._tokens = min(self._burst, self._tokens + gained)
        self._filled = now
        if size > self._tokens:
            return False
        self._tokens -= size
        return True
