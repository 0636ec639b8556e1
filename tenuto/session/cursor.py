"""One listener's place in a session."""

from __future__ import annotations

from enum import Enum, auto
from math import inf

from tenuto.media import FRAME_DURATION
from tenuto.session.pace import PlayoutEstimate

__all__ = ["MAX_RTT", "PATIENCE", "SILENCE", "Cursor", "Departure"]

PATIENCE = 0.100
"""Seconds in which a new listener should take its first frame; less than the low watermark,
so that nobody hears it when production waits for one that does not."""

SILENCE = 0.500
"""Seconds without a confirmation, and two round trips more, after which what a listener was
sent does not count any longer."""

MAX_RTT = 2.0
"""Seconds; what a door tells of a longer round trip is not believed."""

_ROUNDING = 1e-6
"""Frames: ticks do not add up to whole frames to the last bit."""


class Departure(Enum):
    """Why a session let a cursor go."""

    FELL_BEHIND = auto()
    """Its next frame is no longer in the replay window."""
    SUPERSEDED = auto()
    """The first frame of a newer attach of the same listener has arrived."""
    EXPIRED = auto()
    """The session is over."""


class Cursor:
    """The frames of one listener: which comes next and how many may come now.

    `lead` is in seconds, None means unpaced; `catch_up` is how many times real time a paced
    listener may be sent while it is short of its lead. `tolerance` is how many frames it may be
    behind the newest before it goes on near that; None where it wants every frame. Only the
    session moves it.
    """

    __slots__ = (
        "_credit",
        "_credit_at",
        "_rate",
        "confirmed",
        "departure",
        "lead",
        "listener",
        "next",
        "pace",
        "rtt",
        "silent_at",
        "since",
        "start",
        "tolerance",
    )

    def __init__(
        self,
        listener: str,
        start: int,
        lead: float | None,
        now: float,
        *,
        catch_up: int,
        tolerance: int | None = None,
    ) -> None:
        self.listener = listener
        self.start = start
        self.next = start
        self.confirmed = start
        """Every frame below has arrived."""
        self.rtt = 0.0
        self.lead = lead
        self.tolerance = tolerance
        self.since = now
        self.pace = PlayoutEstimate(start, now)
        self.departure: Departure | None = None
        self.silent_at = inf
        """SILENCE and two round trips after the last confirmation, or after the oldest frame was
        sent that is not confirmed, whichever came later; never where all is confirmed.
        """
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
        return self.pace.playing(now) and not self.silent(now)

    def cherished(self, now: float) -> bool:
        """Is its next frame kept for it: because it still plays, or has just come?"""
        if self.next == self.start:
            return now < self.since + PATIENCE
        return self.playing(now)

    def silent(self, now: float) -> bool:
        """Is there no telling whether what it was sent arrives?"""
        return now > self.silent_at

    def advance(self, until: int, now: float) -> None:
        if self.confirmed >= self.next:
            self.silent_at = now + SILENCE + 2 * self.rtt
        self._credit = self._credit_now(now) - (until - self.next)
        self._credit_at = now
        self.next = until
        self.pace.sent(until, now)

    def confirm(self, until: int, now: float, rtt: float) -> bool:
        """All frames below `until` have arrived; True if that is news."""
        rtt = min(rtt, MAX_RTT)
        self.silent_at += 2 * (rtt - self.rtt)
        self.rtt = rtt
        until = min(until, self.next)
        if until <= self.confirmed:
            return False
        self.confirmed = until
        self.silent_at = inf if until == self.next else now + SILENCE + 2 * rtt
        return True

    def jump(self, to: int, now: float) -> None:
        """Leave out what lies before frame `to`; playing begins anew there."""
        if self.next == self.start:
            self.start = to
        if self.confirmed >= self.next:
            self.confirmed = to
        self.next = to
        self.pace = PlayoutEstimate(to, now)

    def _credit_now(self, now: float) -> float:
        """Frames by which a listener may catch up: a bucket of `catch_up`, as many per frame."""
        earned = (now - self._credit_at) / FRAME_DURATION * self._rate
        return min(self._rate, self._credit + earned)
