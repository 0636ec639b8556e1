"""The session itself: production between its watermarks, listeners at their cursors."""

from __future__ import annotations

from tenuto.errors import ErrorCode, RequestError, TenutoError
from tenuto.media import FRAME_DURATION, AudioFormat, Frame, Piece
from tenuto.session.cursor import Cursor, Departure
from tenuto.session.formats import Formats, Span
from tenuto.session.lifecycle import Lifecycle, State, Trigger
from tenuto.session.limits import DEFAULT_LEAD, LIVE_LEAD, MAX_LEAD, MIN_LEAD, SessionLimits
from tenuto.session.ring import Ring

__all__ = ["Session"]


class Session:
    """One stream of speech, as values: the caller owns the source, the sockets and the time.

    The producer appends while `wants_more()`; senders `take` frames for their cursor; the
    owner calls `check` by `deadline`. Sequences count from `start` and never restart.

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
        self.id = id
        self.live = live
        self.limits = limits or SessionLimits()
        self.epoch = 0
        self.base = start
        self.samples = 0
        """Samples per channel produced in this epoch."""
        self.finished = False
        """The source has given all it had."""
        self.failure: TenutoError | None = None
        """Why the source gave up, if it did."""
        self.dropped = 0
        """Frames that listeners of a live session missed, because they were too slow for it."""
        self.cursors: list[Cursor] = []
        self.frontier = start
        """One past the highest sequence that any listener was sent."""
        self._high = _frames(self.limits.high_watermark)
        self._low = _frames(self.limits.low_watermark)
        self._filling = True
        self._longest_lead = DEFAULT_LEAD
        self._ring = Ring(self._window(self._longest_lead), start)
        self._formats = Formats(audio, start)
        self._life = Lifecycle(self.limits, now)

    # Memory

    @property
    def footprint(self) -> int:
        """Bytes of audio it may come to hold; those it does hold once nothing will follow."""
        frames = len(self._ring) if self.done else self._ring.capacity
        return frames * self._formats.largest

    def growth(self, lead: float | None) -> int:
        """Bytes by which a listener with this lead would widen the window."""
        longest = max(self._longest_lead, lead or 0.0)
        return (self._window(longest) - self._ring.capacity) * self._formats.largest

    # Format

    @property
    def audio(self) -> AudioFormat:
        """The format of the newest frame, or of the next where `reformat` has just changed it."""
        return self._formats.newest.audio

    @property
    def newest_format(self) -> Span:
        """The format of the newest frame and since when; changed, with another id."""
        return self._formats.newest

    def format_at(self, sequence: int) -> Span:
        """The format of a frame that is held or comes next."""
        return self._formats.at(sequence)

    @property
    def largest_frame(self) -> int:
        """Bytes of the largest full frame that is held or comes next."""
        return self._formats.largest

    def widening(self, audio: AudioFormat) -> int:
        """Bytes by which frames of this format would widen the footprint."""
        return max(0, audio.frame_size - self._formats.largest) * self._ring.capacity

    def reformat(self, audio: AudioFormat) -> None:
        """The frames appended from now on are of this format."""
        self._formats.change(self.end, audio)

    # Production

    @property
    def end(self) -> int:
        """One past the newest frame; all the frames there will be once `finished`."""
        return self._ring.end

    @property
    def first(self) -> int:
        """The oldest frame that a listener can still ask for."""
        return max(self._ring.first, self.end - self._ring.capacity + self._high)

    @property
    def state(self) -> State:
        return self._life.state

    @property
    def done(self) -> bool:
        """No frame will follow: finished, failed or expired."""
        return self.finished or self.failure is not None or self.state is State.EXPIRED

    def wants_more(self, now: float) -> bool:
        """May the producer append one more frame now?

        Filling stops 400 ms beyond the frontier and starts again at 200 ms (by default), so
        a source works in runs instead of being woken for every frame. A live one never stops.
        """
        if self.live:
            return not self.done
        if self.done or self.state not in (State.NEW, State.PLAYING):
            return False
        ahead = self.end - self.frontier
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
        if not self.live and self.end - self.frontier > self._high:
            raise ValueError(f"session {self.id}: produced beyond its high watermark")
        frame = Frame(self._ring.end, piece.payload, piece.samples, piece.marks)
        self._ring.append(frame)
        self._formats.forget(self._ring.first)
        self.samples += piece.samples
        return frame

    def finish(self) -> None:
        """The source has ended well: END may follow the last frame."""
        self.finished = True

    def fail(self, failure: TenutoError) -> None:
        """The source gave up: listeners get what was produced and then the reason."""
        self.failure = failure

    # Listeners

    def attach(
        self,
        listener: str,
        now: float,
        *,
        start: int | None = None,
        lead: float | None = DEFAULT_LEAD,
    ) -> Cursor:
        """A cursor at frame `start`: by default the oldest there is, in a live session one that
        lies a lead behind the newest.

        An older cursor of the same listener goes on until this one takes its first frame.
        Raises `RequestError`: EXPIRED_SESSION, TOO_OLD, FAR_AHEAD, BAD_REQUEST, AT_CAPACITY.
        """
        self.check_attach(listener, start, lead)
        start = self._default_start(lead) if start is None else start
        cursor = Cursor(listener, start, lead, now, catch_up=self.limits.catch_up)
        self.cursors.append(cursor)
        self._longest_lead = max(self._longest_lead, lead or 0.0)
        self._ring.widen(self._window(self._longest_lead))
        self._life.apply(Trigger.ATTACHED, now)
        return cursor

    def check_attach(self, listener: str, start: int | None, lead: float | None) -> None:
        """Raise what `attach` would raise, and attach nobody."""
        start = self.first if start is None else start
        detail: dict[str, int | float | str] = {"first": self.first, "end": self.end}
        if self.state is State.EXPIRED:
            raise RequestError(
                ErrorCode.EXPIRED_SESSION,
                f"session {self.id} has expired",
                remedy="start a new one",
                detail={"last": self.end - 1},
            )
        if lead is not None and not MIN_LEAD <= lead <= MAX_LEAD:
            raise RequestError(
                ErrorCode.BAD_REQUEST,
                f"a lead of {lead:g} s",
                remedy=f"declare {MIN_LEAD:g} to {MAX_LEAD:g} seconds, or max",
            )
        if start < self.first:
            raise RequestError(
                ErrorCode.TOO_OLD,
                f"frame {start} is no longer held",
                remedy=f"go on from frame {self.first}",
                detail=detail,
            )
        if start > self.end:
            raise RequestError(
                ErrorCode.FAR_AHEAD,
                f"frame {start} lies ahead of frame {self.end}, the next to come",
                remedy=f"ask for {self.end} or less",
                detail=detail,
            )
        others = sum(cursor.listener != listener for cursor in self.cursors)
        most = self.limits.max_listeners
        # Whoever comes back is not one more; but nobody may come back without end.
        if others >= most or len(self.cursors) >= 2 * most:
            raise RequestError(
                ErrorCode.AT_CAPACITY,
                f"session {self.id} has {most} listeners already",
                remedy="try again later or start another session",
            )

    def detach(self, cursor: Cursor, now: float) -> None:
        """The listener is gone; its session stays for a resume."""
        if cursor in self.cursors:
            self.cursors.remove(cursor)
            if not self.cursors:
                self._life.apply(Trigger.LEFT, now)

    def take(self, cursor: Cursor, now: float, most: int) -> list[Frame]:
        """The frames now due to this cursor, at most `most`; they count as sent.

        Empty while nothing is due; with `cursor.departure` set once it is no longer served.
        """
        if cursor.departure is not None or self.state is State.PAUSED:
            return []
        if cursor.next < self._ring.first and not self._catch_up(cursor, now):
            return []
        count = min(most, cursor.due(now, self.end))
        if count <= 0:
            return []
        frames = self._ring.read(cursor.next, count)
        if cursor.next == cursor.start:
            self._supersede(cursor)
        cursor.advance(cursor.next + len(frames), now)
        self.frontier = max(self.frontier, cursor.next)
        return frames

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
        return self._life.deadline

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

    def _supersede(self, newer: Cursor) -> None:
        """Let go of the cursors of the same listener that were attached before this one."""
        for cursor in self.cursors[: self.cursors.index(newer)]:
            if cursor.listener == newer.listener:
                cursor.departure = cursor.departure or Departure.SUPERSEDED

    def _default_start(self, lead: float | None) -> int:
        """Where a listener begins that does not say: from a live source it wants the present."""
        if not self.live:
            return self.first
        return max(self.first, self.end - _frames(LIVE_LEAD if lead is None else lead))

    def _catch_up(self, cursor: Cursor, now: float) -> bool:
        """Its next frame is gone: a live listener leaves out what it missed, another departs."""
        if not self.live:
            cursor.departure = Departure.FELL_BEHIND
            return False
        to = self._default_start(cursor.lead)
        self.dropped += to - cursor.next
        cursor.jump(to, now)
        return True

    def _window(self, longest_lead: float) -> int:
        """Frames to hold: what may be ahead, what may be unplayed, what may be asked again.

        And as many as may be produced between an attach at the oldest and its first `take`.
        """
        return 2 * self._high + _frames(longest_lead + self.limits.replay)

    def _would_overrun(self, now: float) -> bool:
        """Would one more frame push out the next frame of a listener that still plays?

        That happens beside an unpaced one that reads faster, who then waits: lead `max` is a
        wish, no word lost is a promise. A stalled listener has played out what it was sent long
        before it is that far behind, and so holds nobody up. One that has just come holds
        production for PATIENCE, and the next one only after a whole high watermark more.
        """
        if len(self._ring) < self._ring.capacity:
            return False
        return any(
            cursor.departure is None and cursor.next == self._ring.first and cursor.cherished(now)
            for cursor in self.cursors
        )


def _frames(seconds: float) -> int:
    return round(seconds / FRAME_DURATION)
