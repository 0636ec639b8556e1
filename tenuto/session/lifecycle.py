"""A session's life as a table: who is listening, and until when it may live."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from tenuto.session.limits import SessionLimits

__all__ = ["TRANSITIONS", "Lifecycle", "State", "Trigger"]


class State(Enum):
    NEW = auto()
    """Created; nobody ever attached."""
    PLAYING = auto()
    """At least one listener is attached."""
    IDLE = auto()
    """All listeners left; kept for resume."""
    PAUSED = auto()
    """Paused by command; listeners may come and go."""
    EXPIRED = auto()
    """Over: the producer is cancelled and the ring is gone."""


class Trigger(Enum):
    ATTACHED = auto()
    LEFT = auto()
    """The last listener left."""
    PAUSE = auto()
    RESUME = auto()
    DEADLINE = auto()
    CLOSE = auto()


# PAUSED forgets how many listen; the session says ATTACHED or LEFT again after RESUME.
TRANSITIONS: Final[dict[tuple[State, Trigger], State]] = {
    (State.NEW, Trigger.ATTACHED): State.PLAYING,
    (State.NEW, Trigger.PAUSE): State.PAUSED,
    (State.NEW, Trigger.RESUME): State.NEW,
    (State.NEW, Trigger.DEADLINE): State.EXPIRED,
    (State.NEW, Trigger.CLOSE): State.EXPIRED,
    (State.PLAYING, Trigger.ATTACHED): State.PLAYING,
    (State.PLAYING, Trigger.LEFT): State.IDLE,
    (State.PLAYING, Trigger.PAUSE): State.PAUSED,
    (State.PLAYING, Trigger.RESUME): State.PLAYING,
    (State.PLAYING, Trigger.DEADLINE): State.EXPIRED,
    (State.PLAYING, Trigger.CLOSE): State.EXPIRED,
    (State.IDLE, Trigger.ATTACHED): State.PLAYING,
    (State.IDLE, Trigger.PAUSE): State.PAUSED,
    (State.IDLE, Trigger.RESUME): State.IDLE,
    (State.IDLE, Trigger.DEADLINE): State.EXPIRED,
    (State.IDLE, Trigger.CLOSE): State.EXPIRED,
    (State.PAUSED, Trigger.ATTACHED): State.PAUSED,
    (State.PAUSED, Trigger.LEFT): State.PAUSED,
    (State.PAUSED, Trigger.PAUSE): State.PAUSED,
    (State.PAUSED, Trigger.RESUME): State.IDLE,
    (State.PAUSED, Trigger.DEADLINE): State.EXPIRED,
    (State.PAUSED, Trigger.CLOSE): State.EXPIRED,
    (State.EXPIRED, Trigger.LEFT): State.EXPIRED,
    (State.EXPIRED, Trigger.PAUSE): State.EXPIRED,
    (State.EXPIRED, Trigger.RESUME): State.EXPIRED,
    (State.EXPIRED, Trigger.DEADLINE): State.EXPIRED,
    (State.EXPIRED, Trigger.CLOSE): State.EXPIRED,
}


class Lifecycle:
    """Walks the table and keeps the deadline of the state it is in."""

    def __init__(self, limits: SessionLimits, now: float) -> None:
        self._limits = limits
        self._oldest = now + limits.max_age
        self.state = State.NEW
        self.deadline = 0.0
        """When DEADLINE is due, in the time of `now`."""
        self._armed_at = now
        self._arm(now)

    def apply(self, trigger: Trigger, now: float) -> State:
        """Take one step; `ValueError` for a pair the table does not have."""
        after = TRANSITIONS.get((self.state, trigger))
        if after is None:
            raise ValueError(f"{trigger.name} in state {self.state.name}")
        if after is not self.state or (after, trigger) == (State.PAUSED, Trigger.PAUSE):
            # Who says once more that it pauses is still there.
            self.state = after
            self._arm(now)
        return after

    def refresh(self, now: float) -> None:
        """Somebody still plays what it was sent: a life that only waits for it begins anew."""
        waits = self.state in (State.IDLE, State.PAUSED)
        if waits and now - self._armed_at >= self._limits.refresh:
            self._arm(now)

    def _arm(self, now: float) -> None:
        limits = self._limits
        self._armed_at = now
        life = {
            State.NEW: limits.unattached,
            State.IDLE: limits.retention,
            State.PAUSED: limits.paused,
            State.PLAYING: limits.max_age,
            State.EXPIRED: 0.0,
        }[self.state]
        self.deadline = min(now + life, self._oldest)
