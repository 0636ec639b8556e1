"""Frames from one leg after the other: what is read, where it goes on, who carries it."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from tenuto.client.answers import (
    Loss,
    after_loss,
    retry_after,
    return_within,
    strikes_many,
)
from tenuto.client.asking import Asking, Place
from tenuto.client.dialing import AnyLeg, Dialed
from tenuto.client.errors import ConnectError, Failure, FailureKind, LegError, StreamCut
from tenuto.client.events import (
    Cut,
    EpochBegun,
    Event,
    EventLog,
    FormatAnnounced,
    Interrupted,
    Moved,
    NoticeReceived,
    Restarted,
    Resumed,
)
from tenuto.client.exchange import Timings, Transport
from tenuto.client.handover import SURELY_ALIVE, first_of
from tenuto.client.problem import error_code
from tenuto.client.reception import Incomplete, Reception
from tenuto.client.resuming import GaveUp, Resumer, Way
from tenuto.client.target import Value
from tenuto.errors import ErrorCode, RemoteProtocolError, TenutoError
from tenuto.media import FRAME_DURATION, AudioFormat, Frame

__all__ = ["Flow"]

_KEPT = 0.5
"""Seconds of what is still to be heard that no first attempt waits for."""

_MOVE_WITHIN = 1.0
"""Seconds for a leg that is opened beside one that was lost meanwhile; then it is retried."""


class Flow:
    """Holds the frames that came and were not asked for yet, and goes on where a leg is lost.

    `resuming` False leaves that to the caller: the first cut is the end. Retries are made by
    whoever calls `fill`, and by nobody else.
    """

    def __init__(
        self,
        dialed: Dialed,
        asking: Asking,
        resumer: Resumer,
        events: EventLog,
        timings: Timings,
        started: float,
        *,
        resuming: bool,
        deadline: float,
    ) -> None:
        self.leg: AnyLeg = dialed.leg
        self.session = dialed.response.headers.get("tenuto-session") or asking.session
        self.reception = Reception()
        self.frames: deque[Frame] = deque()
        self.changes: deque[FormatAnnounced] = deque()
        """Formats of frames that are held here, but the first one's."""
        self.format: AudioFormat | None = None
        """Of the frame that was taken last, or of the first one."""
        self.ending: TenutoError | StopAsyncIteration | None = None
        self.timings = timings
        self.paused = False
        self.closed = False
        self._asking = asking
        self._resumer = resumer
        self._resuming = resuming
        self._deadline = deadline
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._started = started
        self._heard: tuple[int, float] | None = None
        self._announced: FormatAnnounced | None = None
        self._new_session = True
        self._source_to_come: Mapping[str, Value] | None = None
        self._lost: Loss | None = None
        """Why there is no leg now."""
        self._lost_at: float | None = None
        """Since when there has been no audio."""
        self._handshaken = started
        self._moving: asyncio.Future[None] | None = None
        self._beside: asyncio.Task[tuple[Way, bytes]] | None = None
        self._hurried = False
        """The leg beside was given up, for there is no other one any more."""
        self._answered(dialed.response.headers)

    @property
    def interrupted(self) -> bool:
        """No leg carries the stream now."""
        return self._lost is not None

    @property
    def over(self) -> bool:
        """Nothing more will come, or nobody is there for it."""
        return self.ending is not None or self.closed

    @property
    def ready(self) -> int:
        """Frames of the present format that the next steps give without waiting."""
        if not self.changes or not self.frames:
            return len(self.frames)
        return bisect_left(self.frames, self.changes[0].sequence, key=_sequence)

    def heard(self, sequence: int) -> None:
        self._heard = sequence, self._loop.time()

    def replacing(self, params: Mapping[str, Value] | None) -> None:
        """The next epoch has this source, as far as we know."""
        self._source_to_come = params

    def take(self) -> Frame:
        frame = self.frames.popleft()
        while self.changes and self.changes[0].sequence <= frame.sequence:
            self.format = self.changes.popleft().audio
        return frame

    async def fill(self) -> None:
        """One step: bytes of the leg, or a part of the way to another leg."""
        if self._lost is None:
            await self._read()
        elif self._moving is not None:
            await self._outlast(self._moving)
        elif self._lost_at is None:
            # The leg went while another was opened in its place, which has failed. That one may
            # have superseded it.
            superseded = self._lost.told is ErrorCode.SUPERSEDED
            self._interrupt(replace(self._lost, told=None) if superseded else self._lost)
        else:
            await self._go_on()

    async def move(self, transport: Transport) -> None:
        """Go on over another leg: opened beside the present one, which ends at its first frame.

        Raises `ConnectError`, `RequestError` and `RemoteProtocolError`, and then nothing has
        changed. While the stream is interrupted, it says where the next attempt goes, once.
        """
        while self._moving is not None:
            await asyncio.wait([self._moving])
        if self._lost is not None:
            self._resumer.wish = transport
        if self._lost is not None or self.over:
            return
        began = self._loop.time()
        moving = self._moving = self._loop.create_future()
        beside = self._beside = asyncio.ensure_future(self._open_beside(transport))
        way: Way | None = None
        try:
            found, head = await beside
            first_frame = self._loop.time() - began
            if not self.over:
                way = found
                self._adopt(way)
                handshake = self._handshaken - began
                self._events.add(Moved(self.leg.transport, self.leg.peer, handshake, first_frame))
                self._digest(head)
        except asyncio.CancelledError:
            if not self._hurried:
                raise
            raise _stays(transport, FailureKind.TIMEOUT, "its own leg was lost meanwhile") from None
        except LegError as failed:
            raise _stays(transport, failed.kind, failed.reason) from None
        finally:
            if way is None:
                _let_go(beside)
            self._moving = self._beside = None
            self._hurried = False
            moving.set_result(None)

    async def _open_beside(self, transport: Transport) -> tuple[Way, bytes]:
        # Another session, or a later frame, would cost what the present leg still brings.
        way = await self._resumer.attempt(self._place(), transport, exactly=True)
        leg = way.dialed.leg
        try:
            return way, await first_of(leg, paused=self.paused, deadline=self._deadline)
        except BaseException:
            leg.abort()
            raise

    async def _outlast(self, moving: asyncio.Future[None]) -> None:
        """The leg is lost, and the one that was to follow it may never come."""
        done, _ = await asyncio.wait([moving], timeout=_MOVE_WITHIN)
        if not done and self._beside is not None:
            self._hurried = self._beside.cancel()
            await asyncio.wait([moving])

    async def aclose(self) -> None:
        self.closed = True
        await self.leg.aclose()

    # Reading

    async def _read(self) -> None:
        leg = self.leg
        try:
            data = await leg.read()
        except LegError as failure:
            if leg is self.leg:
                many = strikes_many(failure.kind)
                self._lose(Loss(failure.reason, failure.code, many=many))
            return
        if leg is not self.leg:
            return  # what it brought comes by the other leg too
        if not data:
            self._lose(Loss("the server ended the response without END", many=True))
            return
        if self.timings.first_byte is None:
            self.timings.first_byte = self._loop.time() - self._started
        self._digest(data)

    def _digest(self, data: bytes) -> None:
        reception = self.reception
        try:
            frames, events = reception.feed(data)
        except RemoteProtocolError as error:
            self.ending = error
            self._events.add(Cut(error.message, reception.next_sequence))
            return
        if frames and self.timings.first_frame is None:
            self.timings.first_frame = self._loop.time() - self._started
        self.frames.extend(frames)
        for event in events:
            self._note(event)
        finished = reception.finished
        life = self.paused or reception.signs_of_life >= SURELY_ALIVE
        if self._lost_at is not None and (frames or finished or life):
            self._resumed(self._lost_at)
        if isinstance(finished, Incomplete):
            self._lose(Loss(finished.reason))
        elif finished is not None:
            self.ending = StopAsyncIteration()

    def _note(self, event: Event) -> None:
        self._events.add(event)
        if isinstance(event, FormatAnnounced):
            self._announce(event)
        elif isinstance(event, NoticeReceived) and event.code == "crowd":
            self._resumer.crowd = return_within(event.fields)

    def _announce(self, event: FormatAnnounced) -> None:
        before, self._announced = self._announced, event
        new_session, self._new_session = self._new_session, False
        if before is None or new_session:
            self._asking.began(event.epoch_base)
        elif event.epoch != before.epoch:
            self._begin_epoch(event)
        if self.format is None:
            self.format = event.audio
            return
        # At most one for each frame held: one that no frame followed is forgotten.
        newest = self.frames[-1].sequence if self.frames else -1
        if self.changes and self.changes[-1].sequence > newest:
            self.changes.pop()
        self.changes.append(event)

    def _begin_epoch(self, event: FormatAnnounced) -> None:
        held = len(self.frames)
        kept = [frame for frame in self.frames if frame.sequence >= event.epoch_base]
        self.frames = deque(kept)
        self._asking.replaced(self._source_to_come, event.epoch_base)
        self._source_to_come = None
        self._events.add(EpochBegun(event.epoch, event.epoch_base, held - len(kept)))

    # Going on

    def _lose(self, loss: Loss) -> None:
        """The leg has ended before its time, for this reason or the one it was told before."""
        notice = self.reception.notice
        told = error_code(notice.code) if notice is not None else None
        if notice is not None and told is not None:
            reason = f"{notice.message or notice.code} ({notice.code})"
            wait = retry_after(notice.fields)
            many = told is ErrorCode.DRAINING and not wait
            loss = Loss(reason, told, notice.remedy, wait, many)
        if self._moving is not None:
            self._lost = loss
        else:
            self._interrupt(loss)

    def _interrupt(self, loss: Loss) -> None:
        if not self._resuming or self.session is None or not after_loss(loss):
            self._end(loss)
            return
        self._lost = loss
        self._resumer.interrupted(loss)
        if self._lost_at is None:
            self._lost_at = self._loop.time()
            self._events.add(Interrupted(loss.reason, self.reception.next_sequence))

    async def _go_on(self) -> None:
        try:
            way = await self._resumer.go_on(self._place(), self._unheard())
        except GaveUp as end:
            self._end(Loss(end.reason, end.code, end.remedy))
            return
        self._adopt(way)

    def _adopt(self, way: Way) -> None:
        """From now on this leg carries the stream."""
        reception, headers = self.reception, way.dialed.response.headers
        old, self.leg = self.leg, way.dialed.leg
        old.abort()
        self._lost = None
        self._handshaken = way.dialed_at + way.dialed.connected
        self.session = headers.get("tenuto-session") or self.session
        anew, start = way.anew, reception.next_sequence
        reception.begin_leg(anew=anew is not None)
        if anew is not None:
            self._new_session = True
            self._asking.restarted(anew, start)
            self._events.add(Restarted(self.session, start, anew.skip, anew.text_offset))
        self._answered(headers)

    def _answered(self, headers: Mapping[str, str]) -> None:
        self._asking.answered(headers)
        self._resumer.crowd = return_within(headers, "tenuto-return-within")

    def _resumed(self, lost_at: float) -> None:
        self._lost_at = None
        attempts = self._resumer.flowing()
        gap, handshake = self._loop.time() - lost_at, self._handshaken - lost_at
        self._events.add(Resumed(self.leg.transport, self.leg.peer, gap, attempts, handshake))

    def _end(self, loss: Loss) -> None:
        announced, sequence = self.reception.format, self.reception.next_sequence
        self.ending = StreamCut(
            loss.reason,
            session=self.session,
            epoch=0 if announced is None else announced.epoch,
            next_sequence=sequence,
            code=loss.told or ErrorCode.INTERNAL,
            remedy=loss.remedy,
        )
        self._events.add(Cut(loss.reason, sequence))

    def _place(self) -> Place:
        reception = self.reception
        epoch = None if reception.format is None else reception.format.epoch
        return Place(self.session, epoch, reception.next_sequence, reception.text_offset)

    def _unheard(self) -> float:
        """Seconds that the listener has still to hear, as far as it told, less some for safety."""
        if self._heard is None:
            return 0.0
        sequence, at = self._heard
        ahead = (self.reception.next_sequence - sequence - 1) * FRAME_DURATION
        return max(0.0, ahead - (self._loop.time() - at) - _KEPT)


def _stays(transport: Transport, kind: FailureKind, reason: str) -> ConnectError:
    return ConnectError(
        f"the stream stays where it is: {reason}",
        remedy="move it again later",
        failures=(Failure(transport, kind, reason),),
    )


def _let_go(beside: asyncio.Task[tuple[Way, bytes]]) -> None:
    beside.cancel()
    if beside.done() and not beside.cancelled() and beside.exception() is None:
        beside.result()[0].dialed.leg.abort()


def _sequence(frame: Frame) -> int:
    return frame.sequence
