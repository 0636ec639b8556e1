"""All sessions of this process: opened, found, listened to, expired."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import NoReturn

from tenuto.errors import ErrorCode, RequestError, TenutoError
from tenuto.host.entry import Entry
from tenuto.host.nodes import Nodes
from tenuto.host.producer import Producer
from tenuto.host.reader import Reader
from tenuto.host.tally import Tally
from tenuto.host.tick import Tick
from tenuto.host.tombstones import Tombstones
from tenuto.media import AudioFormat, Frame
from tenuto.policy import return_within
from tenuto.session import Cursor, Session, SessionLimits, State
from tenuto.session.limits import DEFAULT_LEAD
from tenuto.sources.base import Source
from tenuto.telemetry.events import Event, SessionClosed, SessionOpened, SourceStuck
from tenuto.telemetry.faults import describe_fault

__all__ = ["SessionHost"]

CLOSING = 1.0
"""Seconds that sources have for their `finally` when the server stops."""

_SWEEP_TICKS = 5


class SessionHost:
    """Owns the sessions and the tick.

    Every call is made on the loop's thread. `on_event` gets what is worth a log line. `node` is
    this server's tag in the ids of its sessions, `peers` are those of others with their URLs.
    `attach_rate` is how many listeners a second it lets in.
    """

    def __init__(
        self,
        *,
        limits: SessionLimits | None = None,
        max_sessions: int = 2000,
        max_held: int = 1 << 30,
        on_event: Callable[[Event], None] = lambda event: None,
        first_sequence: int = 0,
        attach_rate: float = math.inf,
        node: str = "",
        peers: Mapping[str, str] | None = None,
    ) -> None:
        self.limits = limits or SessionLimits()
        self.tally = Tally()
        self.tick = Tick(self._on_tick)
        self._max_sessions = max_sessions
        self._max_held = max_held
        self._on_event = on_event
        self._first_sequence = first_sequence
        self._attach_rate = attach_rate
        self._crowd = 0
        self._nodes = Nodes(node, peers)
        self._entries: dict[str, Entry] = {}
        self._tombstones = Tombstones()
        self._running: set[Producer] = set()
        self._sweep = 0
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def listeners(self) -> int:
        """Cursors now attached."""
        return sum(len(entry.readers) for entry in self._entries.values())

    @property
    def return_within(self) -> float:
        """Seconds in which all listeners can come back, as of the last tenth of a second."""
        return return_within(self._crowd, self._attach_rate)

    @property
    def producers(self) -> int:
        """Sources at work, those included that were cancelled and are not done yet."""
        return len(self._running)

    def now(self) -> float:
        return self._loop.time()

    @property
    def beat(self) -> float:
        """The time that paces listeners: it moves from tick to tick.

        Were it `now`, a listener whose frames fall due at about the time of the ticks would
        get none with a tick that is punctual and two with one that is late.
        """
        return self.tick.beat

    # Sessions

    def open(
        self, source: Source, *, shared: str | None = None, start: int | None = None
    ) -> Session:
        """Start producing; raises `RequestError` AT_CAPACITY. The first frame is numbered `start`.

        A source that there is but once has a name that its listeners share: while a session
        of that name goes on, it is the answer, and `source` is not used.
        """
        if shared is not None and (running := self.shared(shared)) is not None:
            return running
        if len(self._entries) >= self._max_sessions and not self._evict():
            self._refuse(f"all {self._max_sessions} sessions of this server are in use")
        session = Session(
            self._nodes.new_id(),
            source.format,
            self.now(),
            limits=self.limits,
            start=self._first_sequence if start is None else start,
            live=not source.pausable,
        )
        self._reserve(session.footprint)
        entry = Entry(session, shared=shared)
        self._entries[session.id] = entry
        self.tally.sessions_opened += 1
        audio = source.format
        self._on_event(SessionOpened(session.id, source.kind, audio.rate, audio.channels))
        self._produce(entry, source)
        self.tick.start()
        return session

    def flush(self, session: Session, source: Source | None = None) -> None:
        """Drop what is not sent yet, and go on with this source or the present of a live one.

        With neither the session waits for another flush. The source that it had is cancelled.
        Raises `RequestError`: EXPIRED_SESSION, AT_CAPACITY.
        """
        entry = self._entries[self.find(session.id).id]
        wider = session.renewal(session.audio if source is None else source.format)
        if wider:
            self._reserve(wider, keep=session)
        if source is None:
            goes_on = session.flush(self.now())
        else:
            goes_on = session.flush(self.now(), source.format, live=not source.pausable)
        if entry.producer is not None and not goes_on:
            entry.producer.cancel()
            entry.producer = None
            # It is no longer the session of that source.
            entry.shared = None
        if source is not None:
            self._produce(entry, source)
        self.tally.flushes += 1
        entry.wake()

    def _produce(self, entry: Entry, source: Source) -> None:
        entry.producer = Producer(
            entry.session,
            source,
            on_append=self._appended,
            on_end=self._ended,
            on_fault=self._source_fault,
            on_reformat=self._reformat,
            on_over=self._running.discard,
        )
        self._running.add(entry.producer)

    @property
    def held(self) -> int:
        """Bytes of audio that all sessions together may come to hold, what their sources gave
        too early included.
        """
        return sum(
            entry.session.footprint + (entry.producer.held if entry.producer else 0)
            for entry in self._entries.values()
        )

    def _reformat(self, session: Session, audio: AudioFormat) -> None:
        wider = session.widening(audio)
        if wider:
            self._reserve(wider, keep=session)
        session.reformat(audio)

    def _reserve(self, size: int, *, keep: Session | None = None) -> None:
        """Make room for so many bytes more; idle sessions go first, save the one in hand."""
        while self.held + size > self._max_held:
            if not self._evict(keep):
                self._refuse(f"the {self._max_held >> 20} MiB for audio of this server are in use")

    def _refuse(self, why: str) -> NoReturn:
        self.tally.sessions_refused += 1
        raise RequestError(
            ErrorCode.AT_CAPACITY,
            why,
            remedy="try again in a few seconds",
            detail={"retry_after": 5},
        )

    def _evict(self, keep: Session | None = None) -> bool:
        """Give up the idle session that would expire first; False where all are in use."""
        sessions = (entry.session for entry in self._entries.values())
        idle = [each for each in sessions if each.state is State.IDLE and each is not keep]
        if not idle:
            return False
        self.expire(min(idle, key=lambda session: session.deadline))
        self.tally.sessions_evicted += 1
        return True

    def shared(self, name: str) -> Session | None:
        """The session of that name, as long as more may come."""
        for entry in self._entries.values():
            if entry.shared == name and not entry.session.done:
                return entry.session
        return None

    def find(self, id: str) -> Session:
        """Raises `RequestError`: EXPIRED_SESSION with the last sequence, WRONG_NODE with the right
        one, UNKNOWN_SESSION. A session is over at its deadline, whenever the sweep comes by.
        """
        entry = self._entries.get(id)
        if entry is not None and not self._expire_if_due(entry):
            return entry.session
        self._tombstones.check(id)
        self._nodes.check(id)
        raise RequestError(
            ErrorCode.UNKNOWN_SESSION,
            f"session {id[:64]} is not known here",
            remedy="start one with POST /v1/sessions",
        )

    # Listeners

    def attach(
        self,
        session: Session,
        listener: str,
        *,
        start: int | None = None,
        epoch: int | None = None,
        lead: float | None = DEFAULT_LEAD,
        live: bool | None = None,
    ) -> Cursor:
        """A place in the session; `serve` it with a reader, then `detach` it."""
        entry = self._entries.get(session.id)
        if entry is not None:
            self._expire_if_due(entry)
        # Nobody's session makes room for an attach that is refused.
        session.check_attach(listener, self.beat, start=start, epoch=epoch, lead=lead, live=live)
        growth = session.growth(lead)
        if growth:
            self._reserve(growth, keep=session)
        cursor = session.attach(listener, self.beat, start=start, epoch=epoch, lead=lead, live=live)
        self.tally.listeners_attached += 1
        return cursor

    def serve(self, session: Session, cursor: Cursor, reader: Reader) -> None:
        """From now on wake this reader: at every tick and when its first frames exist."""
        entry = self._entries.get(session.id)
        if entry is not None:
            entry.readers[cursor] = reader
            entry.room()

    def detach(self, session: Session, cursor: Cursor) -> None:
        """Idempotent."""
        session.detach(cursor, self.now())
        entry = self._entries.get(session.id)
        if entry is not None:
            entry.readers.pop(cursor, None)
            entry.room()

    def take(self, session: Session, cursor: Cursor, most: int) -> list[Frame]:
        """`Session.take` at the present beat; the producer learns that there is room."""
        before = session.dropped
        frames = session.take(cursor, self.beat, most)
        self.tally.frames_dropped += session.dropped - before
        if frames:
            self.tally.frames_sent += len(frames)
            entry = self._entries.get(session.id)
            if entry is not None:
                entry.room()
        return frames

    def confirm(self, session: Session, cursor: Cursor, until: int, *, rtt: float = 0.0) -> None:
        """`Session.confirm` now; the producer learns that there is room."""
        session.confirm(cursor, until, self.now(), rtt)
        entry = self._entries.get(session.id)
        if entry is not None:
            entry.room()

    def progress(self, session: Session, listener: str, heard: int) -> None:
        """`Session.progress` now."""
        session.progress(listener, heard, self.now())

    # Life

    def stop_readers(self, reason: Callable[[int], TenutoError]) -> None:
        """Tell every listener of every session; `reason` is given each one's number, from 0 on."""
        number = 0
        for entry in list(self._entries.values()):
            for reader in list(entry.readers.values()):
                reader.stop(reason(number))
                number += 1

    def pause(self, session: Session) -> None:
        """Produce and send nothing until `resume`."""
        session.pause(self.now())

    def resume(self, session: Session) -> None:
        session.resume(self.now())
        entry = self._entries.get(session.id)
        if entry is not None:
            entry.room()

    def expire(self, session: Session) -> None:
        """End a session now, whoever listens."""
        session.close(self.now())
        entry = self._entries.get(session.id)
        if entry is not None:
            self._bury(entry, "closed")

    async def close(self, patience: float = CLOSING) -> None:
        """Cancel every producer and wait until its `finally` has run.

        But not for ever: a source that will not end is named in an event and left behind.
        """
        self.tick.stop()
        for entry in list(self._entries.values()):
            entry.session.close(self.now())
            self._bury(entry, "closed")
        deadline = self.now() + patience
        for producer in list(self._running):
            if not await producer.wait(max(0.0, deadline - self.now())):
                self._on_event(SourceStuck(producer.session_id, producer.kind, patience))

    def _on_tick(self, now: float) -> None:
        for entry in list(self._entries.values()):
            if not entry.readers:
                continue  # There may be many that only wait for a resume.
            # Room may come by time alone, when a stalled listener has played out.
            entry.room()
            for reader in list(entry.readers.values()):
                reader.wake()
        self._sweep += 1
        if self._sweep % _SWEEP_TICKS == 0:
            self._crowd = self.listeners
            for entry in list(self._entries.values()):
                self._expire_if_due(entry)
        if not self._entries:
            self.tick.stop()

    def _expire_if_due(self, entry: Entry) -> bool:
        over = entry.session.check(self.now())
        if over:
            self._bury(entry, "expired")
        return over

    def _bury(self, entry: Entry, how: str) -> None:
        session = entry.session
        if self._entries.pop(session.id, None) is None:
            return
        if entry.producer is not None:
            entry.producer.cancel()
        self._tombstones.bury(session, closed=how == "closed")
        frames = session.end - session.start
        self._on_event(SessionClosed(session.id, frames, entry.outcome(how)))
        for reader in list(entry.readers.values()):
            reader.wake()

    def _appended(self, session: Session) -> None:
        self.tally.frames_produced += 1
        self._notify(session)

    def _ended(self, session: Session) -> None:
        if session.failure is not None:
            self.tally.sources_failed += 1
        self._notify(session)

    def _notify(self, session: Session) -> None:
        entry = self._entries.get(session.id)
        if entry is None or entry.waking:
            return
        # A paced listener in steady state waits for the tick; one that has nothing left, or
        # is unpaced, is served at once: a first frame never waits.
        starving = session.end - 1
        if any(c.lead is None or c.next >= starving for c in entry.readers) or session.done:
            entry.waking = True
            self._loop.call_soon(entry.wake)

    def _source_fault(self, fault: Exception) -> None:
        self._on_event(describe_fault("source", fault))
