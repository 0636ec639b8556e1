"""Which transport carried a stream when, and why it was left."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from tenuto.client import (
    Event,
    Interrupted,
    Moved,
    Resumed,
    Transport,
    TransportChosen,
    Unparked,
)

__all__ = ["MAX_SWITCHES", "Switch", "Switches"]

MAX_SWITCHES = 100
"""Switches a summary tells one by one, the newest ones; `count` has them all."""


@dataclass(frozen=True, slots=True)
class Switch:
    """`at` is in seconds since the start; `origin` may be `to`: over another connection."""

    at: float
    origin: Transport
    to: Transport
    reason: str

    def fields(self) -> dict[str, Any]:
        """For the summary."""
        return {
            "at": round(self.at, 6),
            "from": self.origin,
            "to": self.to,
            "reason": self.reason,
        }


class Switches:
    """Learns of them from a stream's events."""

    def __init__(self) -> None:
        self.recent: deque[Switch] = deque(maxlen=MAX_SWITCHES)
        self.count = 0
        self._transport: Transport | None = None
        self._lost = "the connection was lost"

    @property
    def last(self) -> Switch | None:
        return self.recent[-1] if self.recent else None

    def note(self, event: Event, now: float) -> None:
        """`now` is in seconds since the start."""
        match event:
            case TransportChosen(transport) if self._transport is None:
                # The first one: every later leg is told of so as well, before it takes over.
                self._transport = transport
            case Interrupted(reason):
                self._lost = reason
            case Unparked(transport) if transport != self._transport:
                self._add(transport, "paused for long", now)
            case Resumed(transport) if transport != self._transport:
                self._add(transport, self._lost, now)
            case Moved(transport, reason=reason):
                self._add(transport, reason, now)
            case _:
                pass

    def _add(self, transport: Transport, reason: str, now: float) -> None:
        self.count += 1
        self.recent.append(Switch(now, self._transport or transport, transport, reason))
        self._transport = transport
