"""The jitter buffer: what to play at each turn, and how much time to lose or to gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tenuto.media import Frame
from tenuto.playout.arrival import Arrivals
from tenuto.playout.drift import DriftAnchor
from tenuto.playout.outcome import Concealed, Ended, Outcome, Paused, Played, Waiting
from tenuto.playout.store import FrameStore, Verdict
from tenuto.playout.target import Target
from tenuto.playout.ticks import FRAME_TICKS, seconds, ticks

__all__ = ["JitterBuffer", "PlayoutCounters", "PlayoutMode"]

PlayoutMode = Literal["gapless", "live"]

_LIVE_MARGIN = 5_000
_LIVE_BAND = 5_000
_DRIFT_BAND = 10_000
_FARTHEST = 4_320_000
_LONG_WAIT = 5
_HELD = 40_000


@dataclass(slots=True)
class PlayoutCounters:
    """Frames, each counted once; `underruns` counts episodes, `waited` turns in them."""

    received: int = 0
    played: int = 0
    duplicates: int = 0
    """Came once more, or lie before the start."""
    late: int = 0
    """Came after their place was given up."""
    overflowed: int = 0
    """Refused because the buffer was full."""
    concealed: int = 0
    skipped: int = 0
    """Never came in time, and a wait had already stood for them; or a hole beyond the capacity."""
    flushed: int = 0
    """Dropped before their turn, as what was said is to be heard no more."""
    underruns: int = 0
    waited: int = 0


class JitterBuffer:
    """Frames in by arrival, outcomes out by the sink's clock: one `pull` for each 20 ms.

    docs/playout.md is its specification. `mode` and `drift` decide only what `excess` says.
    `now` is in seconds, of one clock for all calls; for a pull it moves with what is played
    and is not later than the pull itself, for a frame must be there when it is pulled.
    """

    def __init__(
        self,
        start: int,
        *,
        mode: PlayoutMode = "gapless",
        drift: bool = True,
        capacity: int = 2048,
    ) -> None:
        self.mode: PlayoutMode = mode
        self.counters = PlayoutCounters()
        self._store = FrameStore(start, capacity)
        self._capacity = capacity
        self._arrivals = Arrivals()
        self._target = Target()
        self._drift = DriftAnchor() if drift and mode == "gapless" else None
        self._inserted: int | None = None
        self._end: int | None = None
        self._filling = True
        self._underrun = False
        """The waiting, if there is one, is that of an underrun."""
        self._owed = 0
        self._pause: int | None = None
        """The source pauses before this frame, and nothing is due from there on."""
        self._anew: int | None = None
        """The first frame from here on comes after a pause."""

    @property
    def depth(self) -> int:
        """Frames from the next one to play to the newest held, missing ones included."""
        return self._store.depth

    @property
    def next(self) -> int:
        """The frame whose turn is next."""
        return self._store.next

    @property
    def filling(self) -> bool:
        """Whether playout waits, for its beginning, after an underrun or in a pause."""
        return self._filling

    @property
    def target(self) -> float:
        return seconds(self._target.value)

    @property
    def quantile(self) -> float:
        """The quantile behind the target; 0 before the first frame."""
        return 0.0 if self._inserted is None else seconds(self._target.quantile)

    @property
    def base(self) -> float | None:
        """Seconds by which the quickest frame of late came after its place in media time.

        None where there is none to compare with: before the first frame, and in a pause.
        """
        base = self._arrivals.base
        return None if base is None else seconds(base)

    def histogram(self) -> tuple[float, ...]:
        """Shares of the delays in cells of 5 ms."""
        return self._target.histogram.shares()

    def insert(self, frame: Frame, now: float) -> bool:
        """Take a frame in; False if it was late, a duplicate or beyond the capacity."""
        at = ticks(now) if self._inserted is None else max(ticks(now), self._inserted)
        counters = self.counters
        counters.received += 1
        verdict = self._store.insert(frame)
        if verdict is Verdict.DUPLICATE:
            counters.duplicates += 1
            return False
        if verdict is Verdict.OVERFLOW:
            far = frame.sequence - self._store.next > _FARTHEST
            if self._store or self._end is not None or far:
                # Its offset may be absurd: it must not become the base.
                counters.overflowed += 1
                return False
            # A hole that no buffer can hold: whoever waits for its frames waits for ever.
            counters.skipped += self._store.jump(frame)
        if self._anew is not None and frame.sequence >= self._anew:
            self._go_on()
        self._inserted = at
        self._target.observe(self._arrivals.observe(frame.sequence, at), at)
        if verdict is Verdict.LATE:
            counters.late += 1
            return False
        return True

    def finish(self, end: int) -> None:
        """No frame from `end` on will ever exist: what is held may play out at once.

        Of an end further off than the capacity, no more than that is concealed.
        """
        self._end = min(end, self._store.next + self._store.depth + self._capacity)
        self._pause = self._anew = None

    def pause(self, at: int) -> None:
        """The source pauses before frame `at`: to run out there is no underrun.

        With the first frame from there on playout begins as at the first time, and that it was
        long in coming says nothing of the path. If one is here already, nothing changes.
        """
        if self._end is None and at >= self._store.next + self._store.depth:
            self._pause = self._anew = at

    def resume(self) -> None:
        """The source goes on: if playout has not run out yet, frames are due."""
        self._pause = None

    def flush(self, base: int) -> None:
        """Drop what is held below frame `base`, and begin there as at the first time.

        What is known of the path stays known. Below what was played already nothing changes.
        """
        if base <= self._store.next:
            return
        self.counters.flushed += self._store.drop_below(base)
        self._end = None
        self._filling, self._underrun = True, False
        self._owed = 0

    def pull(self, now: float) -> Outcome:
        """What to play for the next 20 ms."""
        store, counters = self._store, self.counters
        if self._over():
            return Ended()
        if self._pauses():
            return Paused()
        skipped = 0
        if self._filling:
            if not self._filled(now):
                return self._wait()
            skipped = self._begin()
            if self._over():
                return Ended()
        if not store and self._end is None:
            self._filling = self._underrun = True
            counters.underruns += 1
            return self._wait()
        sequence = store.next
        self._follow(ticks(now))
        frame = store.take()
        if frame is None:
            counters.concealed += 1
            return Concealed(sequence, skipped)
        counters.played += 1
        return Played(frame, skipped)

    def delay(self, now: float) -> float:
        """How long after the quickest of late a frame pulled at `now` is played."""
        return seconds(self._delay(ticks(now)))

    def excess(self, now: float) -> float:
        """Seconds to lose (or, if negative, to gain) by scaling the frame pulled at `now`."""
        if self._filling or self._end is not None:
            return 0.0
        at = ticks(now)
        if self.mode == "live":
            return _beyond(self._delay(at) - self._target.value - _LIVE_MARGIN, _LIVE_BAND)
        if self._drift is None:
            return 0.0
        return _beyond(self._drift.error(self._position(at)), _DRIFT_BAND)

    def _over(self) -> bool:
        return self._end is not None and self._store.next >= self._end

    def _pauses(self) -> bool:
        """Whether playout stands where the source pauses.

        Frames missing before that place may be on their way: a wait must have stood for them.
        """
        store, at = self._store, self._pause
        if at is None or store or store.next + self._owed < at:
            return False
        self.counters.skipped += store.give_up(at)
        self._arrivals.restart()
        self._filling, self._underrun = True, False
        self._owed = 0
        return True

    def _go_on(self) -> None:
        """The first frame behind a pause is there; what is missing before it is not waited for."""
        self._pause = self._anew = None
        self._arrivals.restart()
        if self._filling and not self._underrun:
            self.counters.skipped += self._store.skip(self._store.depth)

    def _delay(self, now: int) -> int:
        base = self._arrivals.base
        return 0 if base is None else self._position(now) - base

    def _position(self, now: int) -> int:
        """`now` against the place in media time of the next frame to play."""
        return now - self._store.next * FRAME_TICKS

    def _begin(self) -> int:
        """Leave the waiting; how many missing frames the wait stood for."""
        most = self._owed
        if self._end is not None:
            most = min(most, self._end - self._store.next)
        skipped = self._store.skip(most)
        self.counters.skipped += skipped
        self._filling = False
        self._owed = 0
        if self._drift is not None:
            self._drift.restart()
        return skipped

    def _follow(self, now: int) -> None:
        base = self._arrivals.base
        if self._drift is not None and base is not None:
            self._drift.follow(self._position(now), base, now)

    def _filled(self, now: float) -> bool:
        if self._end is not None:
            return True
        if not self._store or self._delay(ticks(now)) < self._target.value:
            return False
        # After a long wait what came may be all there is: the path or the source went on later.
        # Before a pause it is, and is played.
        if self._owed < _LONG_WAIT or self._pause is not None:
            return True
        return (self._store.depth - 1) * FRAME_TICKS >= min(self._target.value, _HELD)

    def _wait(self) -> Waiting:
        if self._underrun:
            self.counters.waited += 1
            self._owed += 1
        return Waiting()


def _beyond(error: int, band: int) -> float:
    """The error in seconds where it leaves the dead band."""
    return seconds(error) if abs(error) > band else 0.0
