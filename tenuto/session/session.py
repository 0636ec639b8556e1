"""The session itself: production between its watermarks, listeners at their cursors."""

from __future__ import annotations

from math import inf

from tenuto.errors import TenutoError
from tenuto.media import AudioFormat, Frame, Piece
from tenuto.session import refusals
from tenuto.session.cursor import Cursor, Departure
from tenuto.session.frontier import Frontier
from tenuto.session.lifecycle import Lifecycle, State, Trigger
from tenuto.session.limits import DEFAULT_LEAD, LIVE_LEAD, LIVE_SLACK, SessionLimits
from tenuto.session.pace import PlayoutEstimate
from tenuto.session.playouts import Playouts
from tenuto.session.stock import Stock, frames_of

__all__ = ["Session"]


class Session(Stock):
    """One stream of speech, as values: the caller owns the source, the sockets and the time.

    The producer appends while `wants_more()`; senders `take` frames for their cursor and
    `confirm` what has arrived; the owner calls `check` by `deadline`. Sequences count from
    `start` and never restart; a `flush` begins a new epoch at the next one.

    A `live` session has a source that cannot wait: it is always given more, whoever listens,
    and a listener that falls out of the window goes on near the newest frame.
    """

    def __init__(
        self,
        id: str,
        audio: AudioFormat,
        now: float,
        *,
        limits: SessionLimits | None = None,
        start: int = 0,
        live: bool = False,
    ) -> None:
        super().__init__(audio, limits or SessionLimits(), start)
        self.id = id
        self.live = live
        self.finished = False
        """The source has given all it had."""
        self.failure: TenutoError | None = None
        """Why the source gave up, if it did."""
        self.waiting = False
        """Flushed, and given no new source yet."""
        self.dropped = 0
        """Frames left out for listeners who were too far behind the newest."""
        self.cursors: list[Cursor] = []
        self._frontier = Frontier(self.cursors, start)
        self._playouts = Playouts(2 * self.limits.max_listeners)
        self._low = frames_of(self.limits.low_watermark)
        self._filling = True
        self._life = Lifecycle(self.limits, now)
        self._waits_until = inf

    # Production

    @property
    def frontier(self) -> int:
        """One past the highest frame that listeners were sent or begin behind, those who are
        silent left out; as of the last call that had a `now`.
        """
        return self._frontier.value

    @property
    def state(self) -> State:
        return self._life.state

    @property
    def done(self) -> bool:
        """No frame will follow: finished, failed or expired."""
        return self.finished or self.failure is not None or self.state is State.EXPIRED

    @property
    def footprint(self) -> int:
        """Bytes of audio it may come to hold; those it does hold once nothing will follow."""
        frames = len(self._ring) if self.done else self._ring.capacity
        return frames * self._formats.largest

    def renewal(self, audio: AudioFormat) -> int:
        """Bytes by which a `flush` to this format would widen the footprint."""
        return max(0, self._ring.capacity * audio.frame_size - self.footprint)

    def wants_more(self, now: float) -> bool:
        """May the producer append one more frame now?

        Filling stops 400 ms beyond the frontier and starts again at 200 ms (by default), so
        a source works in runs instead of being woken for every frame. A live one never stops.
        """
        if self.finished or self.waiting or self.failure is not None:
            return False
        # Asked once a frame: what costs a call is asked once.
        state = self._life.state
        if self.live:
            return state is not State.EXPIRED
        if state is not State.PLAYING and state is not State.NEW:
            return False
        ahead = self._ring.end - self._frontier.at(now)
        if ahead >= self._high:
            self._filling = False
        elif ahead <= self._low:
            self._filling = True
        return self._filling and not self._would_overrun(now)

    def append(self, piece: Piece) -> Frame:
        """Number a piece and make it available.

        `ValueError` beyond the high watermark and after the end.
        """
        if self.done:
            raise ValueError(f"session {self.id}: produced after its end")
        if not self.live and self._ring.end - self._frontier.value > self._high:
            raise ValueError(f"session {self.id}: produced beyond its high watermark")
        return self._store(piece)

    def finish(self) -> None:
        """The source has ended well: END may follow the last frame."""
        self.finished = True

    def fail(self, failure: TenutoError) -> None:
        """The source gave up: listeners get what was produced and then the reason."""
        self.failure = failure

    def flush(self, now: float, audio: AudioFormat | None = None, *, live: bool = False) -> bool:
        """Drop all that was produced and begin a new epoch at the next frame.

        `audio` is the format of a new source. Without one a live source goes on (True, only
        then); otherwise the session waits for the next flush, no longer than `retention`.
        Raises `RequestError` EXPIRED_SESSION.
        """
        self._refuse_if_over(now)
        goes_on = audio is None and self.live and not self.done and not self.waiting
        self._renew(audio)
        self.finished, self.failure = False, None
        self.waiting = audio is None and not goes_on
        self._waits_until = now + self.limits.retention if self.waiting else inf
        if audio is not None:
            self.live = live
        self._filling = True
        self._frontier.restart(self.base)
        self._playouts.forget()
        for cursor in self.cursors:
            cursor.jump(self.base, now)
        return goes_on

    # Listeners

    def attach(
        self,
        listener: str,
        now: float,
        *,
        start: int | None = None,
        epoch: int | None = None,
        lead: float | None = DEFAULT_LEAD,
        live: bool | None = None,
    ) -> Cursor:
        """A cursor at frame `start`: by default the oldest there is, in a live session one that
        lies a lead behind the newest.

        A `live` listener, as those of a live session are by default, leaves out what lies more
        than its lead and half a second behind the newest frame; `start` may be gone already.
        An older cursor of the same listener goes on until a frame of this one is confirmed.
        Raises `RequestError`: EXPIRED_SESSION, OLD_EPOCH, TOO_OLD, FAR_AHEAD, BAD_REQUEST,
        AT_CAPACITY.
        """
        live = self.live if live is None else live
        self.check_attach(listener, now, start=start, epoch=epoch, lead=lead, live=live)
        behind = LIVE_LEAD if lead is None else lead
        if start is None:
            start = self._present(lead) if live or self.live else self.first
        start = max(start, self.base)
        cursor = Cursor(
            listener,
            start,
            lead,
            now,
            catch_up=self.limits.catch_up,
            tolerance=frames_of(behind + LIVE_SLACK) if live else None,
        )
        before = self._playout(listener, now)
        if before is not None:
            cursor.pace = before.resumed(start, now)
        self.cursors.append(cursor)
        # Whoever goes on at a frame has those before it, though no door may have heard of that.
        self._frontier.sent(cursor, now)
        self._widen(lead)
        self._life.apply(Trigger.ATTACHED, now)
        return cursor

    def check_attach(
        self,
        listener: str,
        now: float,
        *,
        start: int | None = None,
        epoch: int | None = None,
        lead: float | None = DEFAULT_LEAD,
        live: bool | None = None,
    ) -> None:
        """Raise what `attach` would raise, and attach nobody."""
        self._refuse_if_over(now)
        refusals.check_lead(lead)
        refusals.check_epoch(epoch, self)
        refusals.check_start(start, self, live=self.live if live is None else live)
        others = sum(cursor.listener != listener for cursor in self.cursors)
        most = self.limits.max_listeners
        # Whoever comes back is not one more; but nobody may come back without end.
        if others >= most or len(self.cursors) >= 2 * most:
            raise refusals.full(self.id, most)

    def detach(self, cursor: Cursor, now: float) -> None:
        """The listener is gone; its session stays for a resume."""
        if cursor in self.cursors:
            self.cursors.remove(cursor)
            self._playouts.left(cursor.listener, cursor.pace)
            self._frontier.left(cursor, now)
            if not self.cursors:
                self._life.apply(Trigger.LEFT, now)

    def take(self, cursor: Cursor, now: float, most: int) -> list[Frame]:
        """The frames now due to this cursor, at most `most`; they count as sent.

        Empty while nothing is due; with `cursor.departure` set once it is no longer served.
        """
        if cursor.departure is not None or self.state is State.PAUSED:
            return []
        if self._left_behind(cursor) and not self._catch_up(cursor, now):
            return []
        count = min(most, cursor.due(now, self._ring.end))
        if count <= 0:
            return []
        frames = self._ring.read(cursor.next, count)
        cursor.advance(cursor.next + len(frames), now)
        self._frontier.sent(cursor, now)
        return frames

    def confirm(self, cursor: Cursor, until: int, now: float, rtt: float = 0.0) -> None:
        """All frames below `until` have reached the listener, over a path of this round trip.

        The first one that does ends the older cursors of the same listener. Before that it tells
        the round trip only. A cursor without news for 500 ms and two round trips, although it
        was sent something, is silent: what it was sent no longer counts, and nothing is held
        for it. A door that cannot tell confirms what it has written.
        """
        before = cursor.confirmed
        if not cursor.confirm(until, now, rtt) or cursor not in self.cursors:
            return
        if before <= cursor.start:
            self._supersede(cursor)
        self._frontier.arrived(cursor.confirmed, now)
        self._frontier.sent(cursor, now)

    def progress(self, listener: str, heard: int, now: float) -> None:
        """This listener, attached or not, plays frame `heard` now.

        It is sent no more than its lead beyond that and what has passed since. A session that
        nobody is attached to, or that is paused, lives on.
        """
        for cursor in self.cursors:
            if cursor.listener == listener:
                cursor.pace.heard(max(heard, self.base), now)
        self._life.refresh(now)

    def due(self, cursor: Cursor, now: float) -> int:
        """How many frames `take` would give this cursor now."""
        if cursor.departure is not None or self.state is State.PAUSED:
            return 0
        if cursor.next < self._ring.first:
            return 0
        return cursor.due(now, self.end)

    def complete(self, cursor: Cursor) -> bool:
        """Has this cursor been given every frame there will ever be?"""
        return self.finished and cursor.next >= self.end

    # Life

    @property
    def deadline(self) -> float:
        """When `check` must be called at the latest, in the time of `now`."""
        return min(self._life.deadline, self._waits_until)

    def check(self, now: float) -> bool:
        """Expire when the time has come; True if the session is over."""
        if now >= self.deadline:
            self._end(Trigger.DEADLINE, now)
        return self.state is State.EXPIRED

    def close(self, now: float) -> None:
        """End the session now, whoever listens."""
        self._end(Trigger.CLOSE, now)

    def pause(self, now: float) -> None:
        """Send and produce nothing until `resume`."""
        self._life.apply(Trigger.PAUSE, now)

    def resume(self, now: float) -> None:
        self._life.apply(Trigger.RESUME, now)
        if self.cursors and self.state is State.IDLE:
            self._life.apply(Trigger.ATTACHED, now)

    def _end(self, trigger: Trigger, now: float) -> None:
        self._life.apply(trigger, now)
        for cursor in self.cursors:
            cursor.departure = cursor.departure or Departure.EXPIRED
        self._ring.clear()

    def _playout(self, listener: str, now: float) -> PlayoutEstimate | None:
        """What is known of a listener who comes back, or comes once more.

        Of several connections that had come as far, each tells how much was played at least.
        """
        paces = [cursor.pace for cursor in self.cursors if cursor.listener == listener]
        left = self._playouts.of(listener)
        known = [*paces, *([left] if left else [])]
        return max(known, key=lambda pace: (pace.end, pace.position(now)), default=None)

    def _refuse_if_over(self, now: float) -> None:
        if self.check(now):
            raise refusals.expired(self.id, self)

    def _supersede(self, newer: Cursor) -> None:
        """Let go of the cursors of the same listener that were attached before this one."""
        for cursor in self.cursors[: self.cursors.index(newer)]:
            if cursor.listener == newer.listener:
                cursor.departure = cursor.departure or Departure.SUPERSEDED

    def _present(self, lead: float | None) -> int:
        """Where a listener goes on that wants no history."""
        return max(self.first, self.end - frames_of(LIVE_LEAD if lead is None else lead))

    def _left_behind(self, cursor: Cursor) -> bool:
        """Is its next frame gone, or further from the newest than it wants to be?"""
        if cursor.next < self._ring.first:
            return True
        return cursor.tolerance is not None and self.end - cursor.next > cursor.tolerance

    def _catch_up(self, cursor: Cursor, now: float) -> bool:
        """A live listener, or any of a live session, leaves out what it missed; others depart."""
        if not self.live and cursor.tolerance is None:
            cursor.departure = Departure.FELL_BEHIND
            return False
        to = self._present(cursor.lead)
        self.dropped += to - cursor.next
        cursor.jump(to, now)
        return True

    def _would_overrun(self, now: float) -> bool:
        """Would one more frame push out the next frame of a listener that still plays?

        That happens beside an unpaced one that reads faster, who then waits: lead `max` is a
        wish, no word lost is a promise. A stalled listener has played out what it was sent long
        before it is that far behind, and so holds nobody up. One that has just come holds
        production for PATIENCE, and the next one only after a whole high watermark more.
        """
        ring = self._ring
        if not ring.full:
            return False
        first = ring.first
        for cursor in self.cursors:
            if cursor.next == first and cursor.departure is None and cursor.cherished(now):
                return True
        return False
