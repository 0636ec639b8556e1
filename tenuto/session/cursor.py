"""One listener's place in a session."""

from __future__ import annotations

from enum import Enum, auto

from tenuto.media import FRAME_DURATION
from tenuto.session.pace import PlayoutEstimate

__all__ = ["PATIENCE", "Cursor", "Departure"]

PATIENCE = 0.100
"""Seconds in which a new listener should take its first frame; less than the low watermark,
so that nobody hears it when production waits for one that does not."""


_ROUNDING = 1e-6
"""Frames: ticks do not add up to whole frames to the last bit."""


class Departure(Enum):
    """Why a session let a cursor go."""

    FELL_BEHIND = auto()
    """Its next frame is no longer in the replay window."""
    SUPERSEDED = auto()
    """A newer attach of the same listener has its first frame."""
    EXPIRED = auto()
    """The session is over."""


class Cursor:
    """The frames of one listener: which comes next and how many may come now.

    `lead` is in seconds, None means unpaced; `catch_up` is how many times real time a paced
    listener may be sent while it is short of its lead. Only the session moves it.
    """

    __slots__ = (
        "_credit",
        "_credit_at",
        "_rate",
        "departure",
        "lead",
        "listener",
        "next",
        "pace",
        "since",
        "start",
    )

    def __init__(
        self, listener: str, start: int, lead: float | None, now: float, *, catch_up: int
    ) -> None:
        self.listener = listener
        self.start = start
        self.next = start
        self.lead = lead
        self.since = now
        self.pace = PlayoutEstimate(start, now)
        self.departure: Departure | None = None
        self._rate = catch_up
        self._credit: float = catch_up
        self._credit_at = now

    def due(self, now: float, end: int) -> int:
        """How many of the frames below `end` may be sent now."""
        available = end - self.next
        if self.lead is None or available <= 0:
            return available
        lead = self.lead / FRAME_DURATION
        allowed = int(self.pace.position(now) + lead + _ROUNDING) - self.next
        return min(available, int(self._credit_now(now) + _ROUNDING), max(allowed, 0))

    def playing(self, now: float) -> bool:
        """Has this listener, as far as we can tell, still something to play?"""
        return self.pace.position(now) < self.next

    def cherished(self, now: float) -> bool:
        """Is its next frame kept for it: because it still plays, or has just come?"""
        if self.next == self.start:
            return now < self.since + PATIENCE
        return self.playing(now)

    def advance(self, until: int, now: float) -> None:
        self._credit = self._credit_now(now) - (until - self.next)
        self._credit_at = now
        self.next = until
        self.pace.sent(until, now)

    def jump(self, to: int, now: float) -> None:
        """Leave out what lies before frame `to`; playing begins anew there."""
        if self.next == self.start:
            self.start = to
        self.next = to
        self.pace = PlayoutEstimate(to, now)

    def _credit_now(self, now: float) -> float:
        """Frames by which a listener may catch up: a bucket of `catch_up`, as many per frame."""
        earned = (now - self._credit_at) / FRAME_DURATION * self._rate
        return min(self._rate, self._credit + earned)
