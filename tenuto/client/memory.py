"""What is remembered of QUIC on the present network, as a stream sees it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from tenuto.client.exchange import Transport

__all__ = ["PathMemory", "ShortMemory"]

_COOL_DOWN = 300.0
_LONGEST_COOL_DOWN = 3600.0


class PathMemory(Protocol):
    """Kept for one origin on one network."""

    def worked(self, transport: Transport) -> None: ...

    def failed(self, transport: Transport) -> None:
        """Of QUIC: it is left alone for a while, each time for twice as long."""
        ...

    def reprobe_in(self) -> float:
        """Seconds until QUIC may be tried again; 0 if it may now."""
        ...

    def network_changed(self) -> None: ...


class ShortMemory:
    """Lasts as long as the stream."""

    def __init__(
        self, cool_down: float = _COOL_DOWN, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._first = self._next = cool_down
        self._now = now
        self._until = 0.0

    def worked(self, transport: Transport) -> None:
        if transport == "quic":
            self.network_changed()

    def failed(self, transport: Transport) -> None:
        if transport == "quic":
            self._until = self._now() + self._next
            self._next = min(_LONGEST_COOL_DOWN, 2 * self._next)

    def reprobe_in(self) -> float:
        return max(0.0, self._until - self._now())

    def network_changed(self) -> None:
        self._until, self._next = 0.0, self._first
