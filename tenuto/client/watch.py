"""Watches over a stream while somebody waits for its audio, and says when it is to move."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Protocol

from tenuto.client.dialing import AnyLeg
from tenuto.client.events import EventLog, Suspected
from tenuto.client.exchange import Transport, TransportChoice
from tenuto.client.paths import Paths
from tenuto.policy import Alarm, LateShare, Switches, Watchdog, WatchPolicy

__all__ = ["OFF", "WATCH", "Watch", "Watched"]

WATCH = WatchPolicy()

OFF = WatchPolicy(suspect=inf, switch=inf, most_pings=0, interval=inf, park_after=inf)
"""Nothing is watched."""

_FORCED = ("black hole", "throttled", "network change")


class Watched(Protocol):
    """What a watch needs of its stream."""

    @property
    def leg(self) -> AnyLeg: ...

    @property
    def over(self) -> bool: ...

    @property
    def changing(self) -> bool:
        """Another leg is on its way already."""
        ...

    def change(self, transport: TransportChoice, reason: str) -> None:
        """Begin to move there, in the background; `moved` or `stayed` follows."""
        ...

    def stay(self, reason: str) -> None:
        """Give up what `change` began."""
        ...


class Watch:
    """One timer, and none while nobody waits. `choice` is what the caller allows."""

    def __init__(
        self,
        stream: Watched,
        policy: WatchPolicy,
        choice: TransportChoice,
        lead: float | None,
        paths: Paths,
        events: EventLog,
    ) -> None:
        self._stream = stream
        self._choice: TransportChoice = choice
        self._lead = lead
        self._paths = paths
        self._events = events
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._dog = Watchdog(policy, now, lead=lead)
        self._late = LateShare(policy.late_window, policy.late_share)
        self._switches = Switches(policy.interval, now)
        self._timer: asyncio.TimerHandle | None = None
        self._escaping = False
        """The move in hand is away from a leg that may still recover."""
        self._choosing = False
        """The move in hand is for the better, and can be given up."""
        self._attending = False
        self._sleeping = False
        self._outage = False
        """Audio was overdue for so long that a switch was due, and still is overdue."""
        self._proved_at = self._proof(now)
        """When QUIC has carried the stream for so long that it holds."""

    # What the stream tells

    def attend(self) -> None:
        """Somebody waits for bytes of the leg."""
        self._attending = True
        self._dog.attend(self._loop.time())
        self._arm()

    def rest(self) -> None:
        self._attending = False
        self._dog.rest(self._loop.time())

    @property
    def sleeping(self) -> bool:
        return self._sleeping

    def sleep(self) -> None:
        """Nothing is due: the session is paused."""
        self._sleeping = True
        self._dog.sleep()

    def begin(self, next: int) -> None:
        """From frame `next` on the schedule is another one."""
        self._dog.begin(next, self._loop.time())
        if self._sleeping:
            self._dog.sleep()
        self._arm()

    def wake(self, next: int) -> None:
        """The session plays, from frame `next` on."""
        self._sleeping = False
        self.begin(next)

    def changed(self, next: int) -> None:
        """Another leg: it tells anew of a pause."""
        self._late.clear()
        self._outage = False
        self._sleeping = False
        self._proved_at = self._proof(self._loop.time())
        self.begin(next)

    def announced(self, chunk_frames: int) -> None:
        self._dog.announced(chunk_frames)

    def took(self, frames: int, next: int, *, alive: bool) -> None:
        """One read: so many frames, or at least signs of life."""
        now = self._loop.time()
        if frames:
            self._outage = self._outage or self._dog.lag(now) >= self._dog.policy.switch
            late = self._dog.arrived(next, now)
            if self._outage:
                # A hole has its own remedy, and what comes behind it is late in any case.
                self._late.clear()
                self._outage = self._dog.suspected
            elif self._lead is not None:
                self._late.add(frames, now, late=late > self._lead)
        elif alive:
            self._dog.alive(now)
        if self._escaping and (self._dog.flowing(now) or not self._dog.suspected):
            self._escaping = False
            self._stream.stay("its own leg delivers again")

    def superseded(self) -> None:
        """The new leg has got through: the present one brings no more, whatever it still holds."""
        self._escaping = self._choosing = False

    def moved(self, left: Transport, reason: str) -> None:
        """The stream goes on over another leg."""
        now = self._loop.time()
        self._escaping = self._choosing = False
        self._switches.made(now)
        here = self._stream.leg.transport
        if left == "quic" and here == "tcp" and reason != "asked":
            self._paths.failed("quic")

    def stayed(self, transport: TransportChoice, reason: str, *, failed: bool) -> None:
        """`failed`: the transport, and not the server's wish or ours."""
        now = self._loop.time()
        self._escaping = self._choosing = False
        if reason in _FORCED:
            self._dog.tried(now)
        elif transport == "quic" and failed:
            self._paths.failed("quic")
        self._arm()

    def close(self) -> None:
        self._attending = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # The timer

    def _arm(self) -> None:
        if not self._attending or self._sleeping:
            return
        due = self._dog.due()
        if self._at_ease:
            due = min(due, self._upgrade_at(self._loop.time()), self._proved_at)
        if self._timer is not None:
            if self._timer.when() <= due:
                return  # It will see.
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._fire) if due < inf else None

    def _fire(self) -> None:
        self._timer = None
        if not self._attending or self._sleeping or self._stream.over:
            return
        now = self._loop.time()
        for alarm in self._dog.check(now):
            self._answer(alarm, now)
        if self._at_ease:
            self._choose(now)
        self._arm()

    def _answer(self, alarm: Alarm, now: float) -> None:
        leg = self._stream.leg
        match alarm:
            case Alarm.PING:
                leg.ping()
            case Alarm.SUSPECT:
                self._events.add(Suspected(leg.transport, self._dog.lag(now)))
            case Alarm.SWITCH:
                if self._stream.changing:
                    if self._choosing:
                        self._stream.stay("its own leg has fallen behind")
                    self._dog.tried(now)
                    return
                reason = "black hole" if self._dog.silent(now) else "throttled"
                self._escaping = True
                self._stream.change(self._elsewhere(), reason)

    @property
    def _at_ease(self) -> bool:
        return not self._dog.suspected and not self._stream.changing

    def _elsewhere(self) -> TransportChoice:
        """Away from QUIC there is TCP; away from TCP whatever answers first."""
        if self._choice != "auto":
            return self._choice
        return "tcp" if self._stream.leg.transport == "quic" else "auto"

    def _choose(self, now: float) -> None:
        """What is done for the better, and not because it must be."""
        if now >= self._proved_at:
            self._proved_at = inf
            self._paths.worked("quic")
        if now >= self._upgrade_at(now):
            self._begin("quic", "QUIC again", now)
        elif self._suffers(now) and self._switches.may(now):
            self._begin("tcp", "late frames", now)

    def _begin(self, transport: Transport, reason: str, now: float) -> None:
        self._switches.made(now)
        self._choosing = True
        self._stream.change(transport, reason)

    def _proof(self, now: float) -> float:
        """Of a leg that begins now."""
        quic = self._stream.leg.transport == "quic"
        return now + self._dog.policy.interval if quic else inf

    def _suffers(self, now: float) -> bool:
        quic = self._choice == "auto" and self._stream.leg.transport == "quic"
        return quic and self._late.bad(now)

    def _upgrade_at(self, now: float) -> float:
        if self._choice != "auto" or self._stream.leg.transport == "quic":
            return inf
        return self._switches.upgrade_at(now, self._paths.reprobe_in())
