"""Is audio overdue? How far what comes is behind the sender's own schedule, and when to act."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from math import inf

from tenuto.media import FRAME_DURATION

__all__ = ["Alarm", "WatchPolicy", "Watchdog"]

_LEAK = 0.002
"""Seconds by which a second makes the schedule later: two clocks agree to 100 ppm at worst, and
a path that has become longer is not behind for ever."""

_ALIVE_EVERY = 0.200
"""Seconds from one KEEPALIVE to the next, where a server has nothing else to say."""

_BREAK = 0.25
"""Seconds between two arrivals that do not belong to one run of audio."""

_SETTLED = 0.5
"""Seconds of audio in real time after which a stream that is late is on a schedule again."""

_FLOWING = 10
"""Frames of a run that are no trickle."""

_MOST_CHUNK = 10
"""Frames: for those of a larger chunk nobody waits in silence, KEEPALIVE comes meanwhile."""


class Alarm(Enum):
    """What is to be done now."""

    PING = auto()
    """Nothing has come for some frame times: show the path that somebody is there."""
    SUSPECT = auto()
    """Said once, until the lag is gone again."""
    SWITCH = auto()
    """Open another leg beside this one; said again where that came to nothing."""


@dataclass(frozen=True, slots=True)
class WatchPolicy:
    """When to act, in seconds."""

    suspect: float = 0.5
    """Lag at which a path is under suspicion."""
    switch: float = 1.0
    """Lag at which another leg is opened."""
    ping_frames: int = 5
    """Frame times without a record before the first ping, or `ping_chunks` chunk times."""
    ping_chunks: int = 2
    ping_every: float = 0.1
    most_pings: int = 120
    """Of one silence: as many as a connection needs to die of it."""
    retry: float = 1.0
    """Before another leg is opened after one that came to nothing; each time twice as long."""
    longest_retry: float = 8.0
    interval: float = 30.0
    """Between two switches that were not forced."""
    late_share: float = 0.05
    late_window: float = 3.0
    park_after: float = 10.0
    """Of a pause, after which its connection is closed."""


class Watchdog:
    """Follows one stream over its legs; `now` is in seconds of one clock.

    A sender paces: frame n leaves at some time + n frame times. The earliest that any frame came,
    by that rule, is the schedule, and the lag is how long the next chunk is overdue by it. Silence
    lets it grow second by second, a trickle does as well. `lead` None is an unpaced sender, which
    has to bring real time. Of time in which nobody waits (`rest`) nothing is counted. What was
    missed in an outage is not made up for: once audio comes in real time again, that is the
    schedule.
    """

    def __init__(self, policy: WatchPolicy, now: float, *, lead: float | None) -> None:
        self.policy = policy
        self.suspected = False
        self._paced = lead is not None
        self._chunk = 1
        self._next = 0
        self._base = now
        """When frame 0 was due, or would have been."""
        self._leaked_at = self._record_at = self._rested_at = now
        self._resting = True
        self._asleep = False
        self._after_frames = True
        self._run_at = self._run_offset = now
        self._run_frames = 0
        self._pings = 0
        self._ping_at = self._switch_at = -inf
        self._tries = 0

    def begin(self, next: int, now: float) -> None:
        """Another leg, another epoch, a gap, the end of a pause: the schedule begins anew."""
        self._next, self._base = next, now - (next - 1) * FRAME_DURATION
        self._leaked_at = now
        self._after_frames = True
        self._asleep = False
        self._recorded(now)
        self._recovered()

    def announced(self, chunk_frames: int) -> None:
        """So many frames come together."""
        self._chunk = max(1, min(chunk_frames, _MOST_CHUNK))

    def arrived(self, next: int, now: float) -> float:
        """All frames below `next` have come; how late the last one is, in seconds."""
        self._runs(next, now)
        self._next = next
        self._after_frames = True
        self._recorded(now)
        self._base += (now - self._leaked_at) * _LEAK
        self._leaked_at = now
        late = now - (next - 1) * FRAME_DURATION - self._base
        if self._paced:
            self._base += min(0.0, late)
        if self.suspected and self.flowing(now) and now - self._run_at >= _SETTLED:
            self._base += max(0.0, self.lag(now))
        if self.lag(now) < self.policy.suspect / 2:
            self._recovered()
        return max(0.0, late)

    def flowing(self, now: float) -> bool:
        """Does audio come in real time, or faster, however late it is?"""
        return self._run_frames >= _FLOWING and now - self._record_at <= _BREAK

    def alive(self, now: float) -> None:
        """KEEPALIVE: whatever is due has come."""
        self._after_frames = False
        self._recorded(now)
        self._base += max(0.0, self.lag(now))
        self._recovered()

    def sleep(self) -> None:
        """The session is paused: nothing is due until `begin`."""
        self._asleep = True

    def rest(self, now: float) -> None:
        """Nobody waits for audio any more, `now` and until `attend`."""
        self._resting, self._rested_at = True, now

    def attend(self, now: float) -> None:
        """Somebody waits."""
        if self._resting:
            idle = max(0.0, now - self._rested_at)
            self._base += idle
            self._record_at += idle
            self._resting = False

    def lag(self, now: float) -> float:
        """Seconds for which the next chunk is overdue; below 0 while it is not."""
        return now - self._expected()

    def silent(self, now: float) -> bool:
        """Is it silence rather than a trickle that the lag is made of?"""
        return now - self._record_at >= self.policy.suspect

    def tried(self, now: float) -> None:
        """The leg that SWITCH asked for came to nothing."""
        policy = self.policy
        wait = min(policy.longest_retry, policy.retry * 2.0 ** min(self._tries, 16))
        self._switch_at = now + wait
        self._tries += 1

    def check(self, now: float) -> tuple[Alarm, ...]:
        """What is due `now`."""
        if self._resting or self._asleep:
            return ()
        alarms = []
        if self._pings < self.policy.most_pings and now >= self._next_ping():
            alarms.append(Alarm.PING)
            self._pings += 1
            self._ping_at = now + self.policy.ping_every
        if not self.suspected and now >= self._expected() + self.policy.suspect:
            alarms.append(Alarm.SUSPECT)
            self.suspected = True
        if now >= self._next_switch():
            alarms.append(Alarm.SWITCH)
            self._switch_at = inf
        return tuple(alarms)

    def due(self) -> float:
        """When `check` is to be called, at the latest."""
        if self._resting or self._asleep:
            return inf
        moments = [self._next_switch()]
        if self._pings < self.policy.most_pings:
            moments.append(self._next_ping())
        if not self.suspected:
            moments.append(self._expected() + self.policy.suspect)
        return min(moments)

    def _runs(self, next: int, now: float) -> None:
        """A run ends with a pause, and where its audio comes more slowly than it is played."""
        offset = now - next * FRAME_DURATION
        grown = offset - self._run_offset > self._chunk * FRAME_DURATION
        if now - self._record_at > _BREAK or grown:
            self._run_at, self._run_offset, self._run_frames = now, offset, 0
        self._run_offset = min(self._run_offset, offset)
        self._run_frames += next - self._next

    def _expected(self) -> float:
        # Whatever the schedule says, somebody who had something before expects the next soon.
        chunk = self._chunk * FRAME_DURATION
        return min(self._base + (self._next - 1) * FRAME_DURATION, self._record_at) + chunk

    def _next_ping(self) -> float:
        policy = self.policy
        silence = max(policy.ping_frames, policy.ping_chunks * self._chunk) * FRAME_DURATION
        if not self._after_frames:
            silence = max(silence, 2 * _ALIVE_EVERY)
        return max(self._record_at + silence, self._ping_at)

    def _next_switch(self) -> float:
        return max(self._expected() + self.policy.switch, self._switch_at)

    def _recorded(self, now: float) -> None:
        self._record_at = now
        self._pings = 0

    def _recovered(self) -> None:
        self.suspected = False
        self._switch_at = -inf
        self._tries = 0
