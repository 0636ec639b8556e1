"""What the records of a leg mean for the stream: frames to hold, and whom else they concern."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from tenuto.client.answers import return_within
from tenuto.client.asking import Asking, Place
from tenuto.client.dialing import AnyLeg
from tenuto.client.events import (
    EpochBegun,
    Event,
    EventLog,
    FormatAnnounced,
    GapSeen,
    NoticeReceived,
)
from tenuto.client.held import Held
from tenuto.client.reception import Reception
from tenuto.client.resuming import Resumer
from tenuto.client.sources import Sources
from tenuto.client.watch import Watch

__all__ = ["Carried", "Intake"]


class Carried(Protocol):
    """The stream, as far as this needs it."""

    @property
    def leg(self) -> AnyLeg: ...

    @property
    def paused(self) -> bool:
        """By ourselves."""
        ...


class Intake:
    """Takes the bytes of whichever leg carries the stream."""

    def __init__(
        self,
        stream: Carried,
        asking: Asking,
        resumer: Resumer,
        watch: Watch,
        events: EventLog,
    ) -> None:
        self.reception = Reception()
        self.held = Held()
        self._stream = stream
        self._asking = asking
        self._resumer = resumer
        self._watch = watch
        self._events = events
        self._announced: FormatAnnounced | None = None
        self._new_session = True
        self.sources = Sources(asking, self._present)

    def place(self, session: str | None) -> Place:
        """Where the stream goes on."""
        place = self.reception.place(session)
        # A place in a text that was flushed is none in the one that is said instead.
        return replace(place, text_offset=None) if self.sources.to_come else place

    def begin_leg(self, *, anew: bool) -> None:
        """Another leg, perhaps of another session."""
        self.reception.begin_leg(anew=anew)
        self._new_session = self._new_session or anew
        if anew:
            self.sources.restarted()

    def _present(self) -> int:
        return -1 if self._new_session else self.reception.epoch or 0

    def take(self, data: bytes) -> int:
        """How many frames they brought; raises `RemoteProtocolError`."""
        reception, life = self.reception, self.reception.signs_of_life
        frames, events = reception.feed(data)
        self.held.frames.extend(frames)
        for event in events:
            self._note(event)
        alive = reception.signs_of_life > life
        self._watch.took(len(frames), reception.next_sequence, alive=alive)
        return len(frames)

    def _note(self, event: Event) -> None:
        self._events.add(event)
        leg, watch = self._stream.leg, self._watch
        match event:
            case FormatAnnounced():
                self._announce(event)
            case GapSeen(sequence, count):
                watch.begin(sequence + count)
            case NoticeReceived(code="paused"):
                watch.sleep()
                leg.rest(quiet=True) if self._stream.paused else leg.doze()
            case NoticeReceived(code="resumed"):
                leg.rest(quiet=False)  # Our own pause was ended by somebody else, perhaps.
                watch.wake(self.reception.next_sequence)
            case NoticeReceived(code="superseded"):
                watch.superseded()
            case NoticeReceived(code="crowd"):
                self._resumer.crowd = return_within(event.fields)
            case _:
                pass

    def _announce(self, event: FormatAnnounced) -> None:
        before, self._announced = self._announced, event
        self._watch.announced(event.chunk_frames)
        new_session, self._new_session = self._new_session, False
        # A new session goes on with what was said, unless that was flushed meanwhile.
        goes_on = new_session and not event.epoch and not self.sources.to_come
        if before is None or goes_on:
            self._asking.began(event.epoch_base)
        elif new_session or event.epoch != before.epoch:
            self._begin_epoch(event)
        self.held.announce(event)

    def _begin_epoch(self, event: FormatAnnounced) -> None:
        dropped = self.held.drop_below(event.epoch_base)
        self._watch.begin(event.sequence)
        self.sources.began(event.epoch, event.epoch_base)
        self._events.add(EpochBegun(event.epoch, event.epoch_base, dropped))
