"""How long a crowd of listeners takes to come back: the server tells, the clients spread."""

from __future__ import annotations

__all__ = ["TELL_INTERVAL", "WORTH_TELLING", "CrowdTeller", "return_within"]

_SLACK = 1.5
"""Times what it takes at the full rate. Each comes at a moment of its own, chance alone would make
queues where there is no room to spare, and who was told before the last doubling knows of fewer."""

WORTH_TELLING = 1.0
"""Seconds from which on a crowd is one: below it clients spread by themselves."""

TELL_INTERVAL = 5.0
"""Seconds between two words about it to the same listener."""


def return_within(listeners: int, rate: float) -> float:
    """Seconds in which so many can come back to a server that lets in `rate` a second."""
    return _SLACK * listeners / rate


class CrowdTeller:
    """What one listener was told: at its beginning, and again when it has doubled or halved."""

    def __init__(self, seconds: float) -> None:
        self._told = seconds if seconds >= WORTH_TELLING else 0.0
        self._at: float | None = None

    @property
    def told(self) -> float:
        """Seconds; 0 where there was nothing worth telling."""
        return self._told

    def due(self, seconds: float, now: float) -> bool:
        """Whether to tell now; then that counts as told."""
        fallen = seconds <= self._told / 2 and self._told > 0
        grown = seconds >= WORTH_TELLING and seconds >= 2 * self._told
        if not (fallen or grown):
            return False
        if self._at is not None and now - self._at < TELL_INTERVAL:
            return False
        self._told = seconds if seconds >= WORTH_TELLING else 0.0
        self._at = now
        return True
