"""Frames from one leg after the other: what is read, where it goes on, who carries it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from tenuto.client.answers import Loss, after_loss, as_told, return_within, stream_cut, strikes_many
from tenuto.client.asking import Asking
from tenuto.client.beside import Beside, Needless
from tenuto.client.dialing import AnyLeg, Dialed
from tenuto.client.errors import ConnectError, LegError
from tenuto.client.events import (
    Cut,
    EventLog,
    Interrupted,
    Moved,
    Parked,
    Rebound,
    Restarted,
    Resumed,
    Stayed,
    Unparked,
)
from tenuto.client.exchange import Timings, Transport, TransportChoice
from tenuto.client.handover import SURELY_ALIVE
from tenuto.client.intake import Intake
from tenuto.client.parking import Parking
from tenuto.client.paths import Paths
from tenuto.client.reception import Incomplete
from tenuto.client.resuming import GaveUp, Resumer, Way
from tenuto.client.unheard import Unheard
from tenuto.client.watch import OFF, Watch
from tenuto.errors import ErrorCode, RemoteProtocolError, RequestError, TenutoError
from tenuto.policy import WatchPolicy

__all__ = ["Flow"]

_KNOCK_AGAIN = 0.25
"""Seconds before a command to a parked stream looks for the server once more."""


class Flow:
    """Holds the frames that came and were not asked for yet, and goes on where a leg is lost.

    `resuming` False leaves that to the caller: the first cut is the end. Retries are made within
    `fill`, which `Ahead` calls. While it does, `watch` moves the stream in time, None does not.
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
        watch: WatchPolicy | None,
        paths: Paths,
    ) -> None:
        self.leg: AnyLeg = dialed.leg
        self.session = dialed.response.headers.get("tenuto-session") or asking.session
        self.ending: TenutoError | StopAsyncIteration | None = None
        self.timings = timings
        self.paused = False
        self.closed = False
        self._asking = asking
        self._resumer = resumer
        self._resuming = resuming
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._started = started
        self.unheard = Unheard()
        self._lost: Loss | None = None
        """Why there is no leg now."""
        self._lost_at: float | None = None
        """Since when there has been no audio."""
        self._handshaken = started
        self._beside = Beside(resumer, deadline)
        self._adopted = asyncio.Event()
        """Another leg carries the stream, or none ever will."""
        self._change: asyncio.Task[None] | None = None
        """A move of our own accord."""
        self._networks = 0
        """Those that were left, and the connection with them."""
        self._leaving: asyncio.Task[None] | None = None
        policy = watch if watch is not None and resuming else OFF
        self._watch = Watch(self, policy, resumer.transport, asking.lead, paths, events)
        self._intake = Intake(self, asking, resumer, self._watch, events)
        self.reception, self.held = self._intake.reception, self._intake.held
        self.sources = self._intake.sources
        self.on_park: Callable[[], None] = lambda: None
        self.parking = Parking(policy.park_after, self._park)
        self._answered(dialed.response.headers)

    @property
    def interrupted(self) -> bool:
        """No leg carries the stream now."""
        return self._lost is not None

    @property
    def over(self) -> bool:
        """Nothing more will come, or nobody is there for it."""
        return self.ending is not None or self.closed

    async def fill(self) -> None:
        """One step: bytes of the leg, or a part of the way to another leg."""
        if self.parking.parked:
            await self.parking.over()
        elif self._lost is None:
            await self._read()
        elif self._beside.busy:
            await self._beside.outlast()
        elif self._lost_at is None:
            # The leg went while another was opened in its place, which has failed. That one may
            # have superseded it.
            superseded = self._lost.told is ErrorCode.SUPERSEDED
            self._interrupt(replace(self._lost, told=None) if superseded else self._lost)
        else:
            await self._go_on()

    # Another leg beside this one

    @property
    def changing(self) -> bool:
        """Another leg is on its way, or must be."""
        opening = self._beside.busy or (self._change is not None and not self._change.done())
        return opening or self._lost is not None or self.parking.parked

    async def move(self, transport: Transport) -> None:
        """Go on over another leg: opened beside the present one, which ends at its first frame.

        Raises `ConnectError`, `RequestError` and `RemoteProtocolError`, and then nothing has
        changed. While the stream is interrupted, it says where the next attempt goes, once.
        """
        await self._beside.turn()
        if self._lost is not None or self.parking.parked:
            self._resumer.wish = transport
        elif not self.over:
            await self._move(transport, "asked")

    def change(self, transport: TransportChoice, reason: str) -> None:
        """The same in the background, where no other move is on its way; events tell."""
        if not self.changing and not self.over:
            self._change = asyncio.ensure_future(self._try_to_move(transport, reason))

    def stay(self, reason: str) -> None:
        """What `change` began is not needed any more."""
        self._beside.give_up(reason)

    async def left(self, leg: AnyLeg, within: float) -> bool:
        """Whether another leg carries the stream, or has, or does within so many seconds.

        Or is to be asked for, where the stream is parked: in a moment.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, within)):
                while leg is self.leg and not self.over and not self.parking.parked:
                    await self._adopted.wait()
                if self.parking.parked:
                    await asyncio.sleep(_KNOCK_AGAIN)
                    return not self.over
        return leg is not self.leg and not self.parking.parked

    def rebind(self) -> None:
        """The network has changed: go on from another port, or over another connection."""
        if self.over:
            return
        # What is being opened was meant for the network that we have left.
        self._resumer.hurry.ask()
        self._beside.give_up("the network has changed")
        if self._lost is not None or self.parking.parked:
            return
        if self.leg.rebind():
            self._events.add(Rebound(self.leg.transport, self.leg.peer))
        else:
            self._networks += 1
            self.change(self._resumer.transport, "network change")

    async def _try_to_move(self, transport: TransportChoice, reason: str) -> None:
        leg = self.leg
        await self._beside.turn()  # A caller's own move may have begun since.
        while self.leg is leg and self._lost is None and not self.parking.parked and not self.over:
            network = self._networks
            try:
                return await self._move(transport, reason)
            except (ConnectError, RemoteProtocolError, RequestError) as error:
                self._events.add(Stayed(transport, error.message))
                failed = isinstance(error, ConnectError) and not isinstance(error, Needless)
            if network == self._networks:
                return self._watch.stayed(transport, reason, failed=failed)
            transport, reason = self._resumer.transport, "network change"

    async def _move(self, transport: TransportChoice, reason: str) -> None:
        began = self._loop.time()
        way, head = await self._beside.open(
            transport, self._intake.place(self.session), paused=self.paused
        )
        if self.over or self.parking.parked:
            way.dialed.leg.abort()
            return
        first_frame, left = self._loop.time() - began, self.leg.transport
        self._adopt(way)
        leg, handshake = self.leg, self._handshaken - began
        self._events.add(Moved(leg.transport, leg.peer, handshake, first_frame, reason))
        self._watch.moved(left, reason)
        self._digest(head)

    # Pauses

    def pause(self, expires_in: object) -> None:
        """The server sends nothing from now on; after a while the connection is closed."""
        self.paused = True
        self._watch.sleep()
        self.leg.rest(quiet=True)
        self.parking.paused(expires_in)

    def unpause(self) -> None:
        self.paused = False
        self.parking.leave()
        self.leg.rest(quiet=False)
        self._watch.wake(self.reception.next_sequence)

    async def unpark(self) -> None:
        """A leg again, for a stream that was parked; one attempt, with a new session if need be.

        Raises `ConnectError` and `RequestError`; then it is still parked.
        """
        if not self.parking.parked:
            return
        began = self._loop.time()
        transport, self._resumer.wish = self._resumer.wish or self._resumer.transport, None
        place = self._intake.place(self.session)
        while (way := await self._resumer.once(place, transport)) is None:
            if self.over or not self.parking.parked:
                return
        if self.over or not self.parking.parked:
            way.dialed.leg.abort()
            return
        self._adopt(way)
        leg, handshake = self.leg, self._handshaken - began
        self._events.add(Unparked(leg.transport, leg.peer, place.sequence, handshake))
        self.parking.leave()
        self.parking.wait()

    def _park(self) -> None:
        if self.over or self.changing or not self._watch.sleeping:
            self.parking.wait()  # What is on its way must come to its end first.
        else:
            self._rest()

    def _rest(self) -> None:
        """Without a leg, until `unpark`."""
        self.parking.enter()
        self._leaving = asyncio.ensure_future(self.leg.aclose())
        self._adopted.set()
        self._adopted = asyncio.Event()
        self.on_park()
        self._events.add(Parked(self.reception.next_sequence, self.parking.expires_in))

    async def aclose(self) -> None:
        """Whatever is under way is given up, also where this is cancelled."""
        self.closed = True
        self._adopted.set()
        self._watch.close()
        self.parking.leave()
        self._resumer.hurry.end()
        ending = [task for task in (self._change, self._leaving) if task is not None]
        for task in ending:
            task.cancel()
        try:
            if ending:
                await asyncio.wait(ending)
        finally:
            self._beside.give_up("the stream is closed")
            await self.leg.aclose()

    # Reading

    async def _read(self) -> None:
        leg = self.leg
        self._watch.attend()
        try:
            data = await leg.read()
        except LegError as failure:
            if leg is self.leg and not self.parking.parked:
                many = strikes_many(failure.kind)
                self._lose(Loss(failure.reason, failure.code, many=many))
            return
        finally:
            self._watch.rest()
        if leg is not self.leg or self.parking.parked:
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
            frames = self._intake.take(data)
        except RemoteProtocolError as error:
            self.ending = error
            self._events.add(Cut(error.message, reception.next_sequence))
            return
        if frames and self.timings.first_frame is None:
            self.timings.first_frame = self._loop.time() - self._started
        finished = reception.finished
        lives = self.paused or reception.signs_of_life >= SURELY_ALIVE
        if self._lost_at is not None and (frames or finished or lives):
            self._resumed(self._lost_at)
        if isinstance(finished, Incomplete):
            self._lose(Loss(finished.reason))
        elif finished is not None:
            self.ending = StopAsyncIteration()

    # Going on

    def _lose(self, loss: Loss) -> None:
        """The leg has ended before its time, for this reason or the one it was told before."""
        loss = as_told(loss, self.reception.notice)
        if loss.told is ErrorCode.SUPERSEDED and self._asking.listener_is_ours:
            # Nobody else has that name: a leg of our own did, that nobody reads any more.
            loss = replace(loss, told=None)
        if self._beside.busy:
            self._lost = loss
        else:
            self._interrupt(loss)

    def _interrupt(self, loss: Loss) -> None:
        if not self._resuming or self.session is None or not after_loss(loss):
            self._end(loss)
            return
        if self.paused and self._watch.sleeping:
            # Nothing is due, and a new session would play: whoever says `resume` looks for it.
            self._lost = None
            self._rest()
            return
        self._lost = loss
        self._resumer.interrupted(loss)
        if self._lost_at is None:
            self._lost_at = self._loop.time()
            self._events.add(Interrupted(loss.reason, self.reception.next_sequence))

    async def _go_on(self) -> None:
        try:
            way = await self._resumer.go_on(
                self._intake.place(self.session),
                self.unheard.seconds(self.reception.next_sequence, self._loop.time()),
            )
        except GaveUp as end:
            self._end(Loss(end.reason, end.code, end.remedy))
            return
        self._adopt(way)

    def _adopt(self, way: Way) -> None:
        """From now on this leg carries the stream."""
        reception, headers = self.reception, way.dialed.response.headers
        old, self.leg = self.leg, way.dialed.leg
        old.abort()
        self._adopted.set()
        self._adopted = asyncio.Event()
        self._lost = None
        self._handshaken = way.dialed_at + way.dialed.connected
        self.session = headers.get("tenuto-session") or self.session
        anew, start = way.anew, reception.next_sequence
        self._intake.begin_leg(anew=anew is not None)
        self._watch.changed(start)
        if anew is not None:
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
        reception = self.reception
        epoch, sequence = reception.epoch, reception.next_sequence
        self._adopted.set()
        self.ending = stream_cut(loss, self.session, epoch or 0, sequence)
        self._events.add(Cut(loss.reason, sequence))
