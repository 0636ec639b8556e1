"""What a stream sends next. The doors move its bytes and know nothing of sessions."""

from __future__ import annotations

from enum import Enum, auto

from tenuto.errors import ErrorCode, RequestError, TenutoError
from tenuto.media import FRAME_DURATION
from tenuto.session import Departure, State
from tenuto.web.chunking import FRAME_OVERHEAD, fitting
from tenuto.web.encodings import CannotGoOn
from tenuto.web.plan import Plan
from tenuto.web.words import Words

__all__ = ["KEEPALIVE_AFTER", "Delivery", "DeliveryState"]

_PATIENCE = 0.010
"""Seconds by which a chunk may be late before it goes as it is."""

KEEPALIVE_AFTER = 0.200
"""Seconds without a record, or since the last sign of life where the listener has all that there
is, after which a listener of records gets one."""

_DEPARTURES = {
    Departure.FELL_BEHIND: (
        ErrorCode.TOO_SLOW,
        "this listener fell out of the replay window",
        "resume from the first frame still held",
    ),
    Departure.SUPERSEDED: (
        ErrorCode.SUPERSEDED,
        "a newer connection of this listener has taken over",
        "",
    ),
    Departure.EXPIRED: (ErrorCode.EXPIRED_SESSION, "the session is over", "start a new one"),
}


class DeliveryState(Enum):
    OPEN = auto()
    COMPLETE = auto()
    """All was given, END included: the stream may end cleanly."""
    BROKEN = auto()
    """A NOTICE was given: the stream must end so that nobody takes it for complete."""


_OVER = (DeliveryState.COMPLETE, DeliveryState.BROKEN)


class Delivery:
    """One plan being carried out.

    `frames_per_chunk` is how many frames the door likes to send together, if the listener
    has no wish; fewer are given only first of all, when no more will come, when the source
    pauses and when `pull` is asked for fewer. Where the listener has a wish, more are never
    given either. A door that learns what has arrived `confirms` it to the host by itself; for
    another one what it is given counts as arrived.
    """

    def __init__(self, plan: Plan, *, frames_per_chunk: int, confirms: bool = False) -> None:
        self.plan = plan
        self._confirms = confirms
        self.state = DeliveryState.OPEN
        self.failure: TenutoError | None = None
        """Why it is BROKEN."""
        self._largest = 0
        self._chunk = self._together(plan.chunk or frames_per_chunk)
        self._epoch: int | None = None
        """That of what was given; None before the first byte."""
        self.silent = True
        """No frame of the present epoch has been given yet."""
        self._words = Words(plan)
        self._spoke_at = 0.0
        self._lived_at = 0.0
        """When it was last told that it has all that is due."""
        self._gave_at = 0.0
        """The beat at which frames were last given."""

    @property
    def frame_size(self) -> int:
        """Bytes of a full frame, records' overhead included; the largest yet, for a session may
        change its format while plain players go on in the first one.
        """
        largest = self.plan.session.largest_frame
        if largest > self._largest:
            self._largest = largest
        return self._largest + FRAME_OVERHEAD

    @property
    def fitting(self) -> int:
        """How many full frames a chunk may hold."""
        return fitting(self.frame_size - FRAME_OVERHEAD)

    def waits(self) -> bool:
        """Would `pull` give nothing now, because nothing is due or frames wait for company?

        Cheaper than `pull`: most ticks of a listener that gets chunks are like that.
        """
        if self.silent or self.state is not DeliveryState.OPEN:
            return False
        if self._epoch != self.plan.session.epoch:
            return False
        if self._words.due or self._life_is_due():
            return False
        return not self._ripe(self._chunk)

    def pull(self, most: int) -> bytes:
        """The bytes to send now, of at most `most` frames; empty while nothing is due."""
        if self.state is not DeliveryState.OPEN:
            return b""
        plan = self.plan
        if plan.chunk is not None:
            most = min(most, self._chunk)
        head = self._head() + self._words.take()
        life = self._life_is_due()
        frames = plan.host.take(plan.session, plan.cursor, most) if self._ripe(most) else []
        if frames:
            self.silent = False
            self._gave_at = plan.host.beat
            if not self._confirms:
                plan.host.confirm(plan.session, plan.cursor, plan.cursor.next)
        try:
            body = plan.encoding.frames(frames) if frames else b""
        except CannotGoOn as end:
            return head + end.before + self.break_off(end.reason)
        data = head + body + self._tail()
        if life and self.state not in _OVER:
            self._lived_at = self._spoke_at = plan.host.now()
            return data + plan.encoding.keepalive()
        if data:
            self._spoke_at = plan.host.now()
        return data

    def break_off(self, failure: TenutoError) -> bytes:
        """Give up for a reason of the door's own; the NOTICE to send, if the encoding has any."""
        if self.state is not DeliveryState.OPEN:
            return b""
        self.state = DeliveryState.BROKEN
        self.failure = failure
        return self.plan.encoding.notice(failure)

    def _life_is_due(self) -> bool:
        """Was nothing said for 200 ms, or does the listener have all that there is?

        Silence is to mean trouble, and a source that is slow is not to be taken for a path that
        is. Not while paused, for radios must sleep.
        """
        session = self.plan.session
        if session.state is State.PAUSED or self.state is not DeliveryState.OPEN:
            return False
        now = self.plan.host.now()
        if now - self._lived_at < KEEPALIVE_AFTER:
            return False
        # Of a source that keeps up more is waiting here at every beat; a part of a chunk is none.
        few = session.end - self.plan.cursor.next <= max(1, self._chunk - 1)
        return few or now - self._spoke_at >= KEEPALIVE_AFTER

    def _head(self) -> bytes:
        """What comes before the first frame, and before the first of each further epoch."""
        epoch, encoding = self.plan.session.epoch, self.plan.encoding
        if self._epoch == epoch:
            return b""
        begun, self._epoch = self._epoch is not None, epoch
        self.silent = True
        self._lived_at = self.plan.host.now()
        session = self.plan.session
        if not begun and session.end <= self.plan.cursor.next and not session.done:
            # Whoever races two paths need not wait for a source that is slow to begin.
            self._lived_at -= KEEPALIVE_AFTER
        return encoding.flushed() if begun else encoding.begin(self._chunk)

    def _together(self, wanted: int) -> int:
        """As many of `wanted` frames as can ever come together."""
        session, cursor = self.plan.session, self.plan.cursor
        wanted = min(wanted, self.fitting)
        if cursor.lead is not None:
            # More than a lead, or than may be caught up with at once, never become due.
            lead = int(cursor.lead / FRAME_DURATION)
            wanted = min(wanted, lead, session.limits.catch_up)
        return max(1, wanted)

    def _ripe(self, most: int) -> bool:
        """Is it time to take frames: enough for a chunk, or all there will be?"""
        session, cursor = self.plan.session, self.plan.cursor
        if self.silent or cursor.departure is not None or cursor.next < session.first:
            return True
        wanted = min(self._chunk, self.fitting, most)
        if session.done:
            wanted = min(wanted, session.end - cursor.next)
        beat = self.plan.host.beat
        due = session.due(cursor, beat)
        if due >= wanted:
            return True
        # A source that pauses must not keep the end of a word for its next one.
        return due > 0 and beat - self._gave_at > self._chunk * FRAME_DURATION + _PATIENCE

    def _tail(self) -> bytes:
        session, cursor = self.plan.session, self.plan.cursor
        if session.complete(cursor):
            self.state = DeliveryState.COMPLETE
            return self.plan.encoding.end()
        if cursor.departure is not None:
            code, message, remedy = _DEPARTURES[cursor.departure]
            detail: dict[str, int | float | str] = {"first": session.first}
            if cursor.departure is Departure.EXPIRED:
                detail = {"last": session.end - 1}
            return self.break_off(RequestError(code, message, remedy=remedy, detail=detail))
        if session.failure is not None and cursor.next >= session.end:
            return self.break_off(session.failure)
        return b""
