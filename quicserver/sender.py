"""Carries out a plan on one HTTP/3 stream: the tick's frames into its body, within bounds."""

from __future__ import annotations

import asyncio
import math
from typing import Protocol

from quicserver.limits import DoorLimits
from tenuto.errors import ErrorCode, RequestError, TenutoError
from tenuto.media import FRAME_DURATION
from tenuto.quic import Connection, Http3
from tenuto.session import DEFAULT_LEAD, State
from tenuto.web import Delivery, DeliveryState, Plan
from tenuto.web.confirmation import Confirmations

__all__ = ["PlanSender", "Transmitter"]

_MARGIN = 0.2
"""Seconds of audio that may be on the way beside the lead and two round trips."""


class Transmitter(Protocol):
    """What a sender needs of its connection's owner."""

    @property
    def connection(self) -> Connection: ...

    @property
    def http(self) -> Http3: ...

    def request_flush(self, sender: PlanSender) -> None:
        """Call `sender.flush` and then transmit, soon and once."""
        ...


class PlanSender:
    """The reader of one cursor.

    Bytes are written only while the stream holds less than its limit unacknowledged, and very
    little that cannot leave at once, so a slow listener costs that much and no more; the
    session is told what has arrived. `done` resolves when the stream has been ended, cleanly
    or not.
    """

    def __init__(
        self, peer: Transmitter, stream_id: int, plan: Plan, limits: DoorLimits, now: float
    ) -> None:
        self.stream_id = stream_id
        self.blocked = False
        """Waiting for acknowledgements rather than for frames."""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._peer = peer
        self._plan = plan
        self._limits = limits
        self._delivery = Delivery(plan, frames_per_chunk=1, confirms=True)
        self._confirmations = Confirmations(plan.cursor.next)
        self._acknowledged = 0
        self._moved_at = now
        self._farewell: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Be woken by the session, which is told at once how far away its listener is."""
        plan = self._plan
        plan.host.serve(plan.session, plan.cursor, self)
        rtt = self._peer.connection.smoothed_rtt
        plan.host.confirm(plan.session, plan.cursor, plan.cursor.next, rtt=rtt)
        self.wake()

    @property
    def expecting(self) -> bool:
        """Is audio expected to flow, so that silence should be filled with PINGs?

        While paused it is not: the radio may sleep.
        """
        return not self.done.done() and self._plan.session.state is not State.PAUSED

    def wake(self) -> None:
        if self.done.done():
            return
        # Only what is held can stand still, and only a flush would notice.
        if self._delivery.waits() and not self._peer.connection.held(self.stream_id):
            return
        self._peer.request_flush(self)

    def stop(self, reason: TenutoError) -> None:
        if not self.done.done() and self._delivery.state is DeliveryState.OPEN:
            self._say_farewell(self._delivery.break_off(reason))
            self._peer.request_flush(self)

    def flush(self, now: float) -> None:
        """Write what is due and fits."""
        if self.done.done():
            return
        self.acknowledged(now)
        if self._farewell is not None:
            if self._peer.connection.held(self.stream_id) == 0:
                self._said_farewell()
            return
        room = self._room(now)
        self.blocked = room <= 0
        while room > 0 and self._delivery.state is DeliveryState.OPEN:
            data = self._delivery.pull(max(1, room // self._delivery.frame_size))
            if not data and self._delivery.state is DeliveryState.OPEN:
                return
            room -= len(data)
            self._write(data)
            # A farewell waits for its acknowledgement, whatever room there is.
            self.blocked = room <= 0 or self._farewell is not None

    def acknowledged(self, now: float) -> None:
        """The listener may have more than when it was last looked at: tell the session."""
        connection = self._peer.connection
        acknowledged = connection.acknowledged(self.stream_id)
        if acknowledged <= self._acknowledged:
            return
        self._acknowledged = acknowledged
        self._moved_at = now
        until = self._confirmations.reached(acknowledged)
        if until is not None:
            plan = self._plan
            plan.host.confirm(plan.session, plan.cursor, until, rtt=connection.smoothed_rtt)

    def abandon(self) -> None:
        """The listener is gone: nothing more is written."""
        if self._farewell is not None:
            self._farewell.cancel()
        if not self.done.done():
            self.done.set_result(None)

    def _write(self, data: bytes) -> None:
        state = self._delivery.state
        if state is DeliveryState.BROKEN:
            self._say_farewell(data)
        elif not self._peer.http.write(
            self.stream_id, data, end_stream=state is DeliveryState.COMPLETE
        ):
            self.abandon()
        elif state is DeliveryState.COMPLETE:
            self._complete()
        else:
            written = self._peer.connection.written(self.stream_id)
            self._confirmations.wrote(written, self._plan.cursor.next)

    def _room(self, now: float) -> int:
        """Bytes that may be written now; a stream that stands still too long is given up."""
        connection = self._peer.connection
        held = connection.held(self.stream_id)
        if self._plan.cursor.departure is not None:
            return 1  # All that is left to say is why, and whoever stands still is let go, too.
        if held == 0:
            self._moved_at = now
            return min(self._limit(), self._limits.most_unsent)
        still = now - self._moved_at
        # Who is not heard at all has no say in it: the idle time-out decides about a radio.
        if min(still, connection.heard_for(now)) > self._limits.stalled:
            self.stop(
                RequestError(
                    ErrorCode.TOO_SLOW,
                    f"nothing was acknowledged for {self._limits.stalled:g} s",
                    remedy="resume on a better path",
                )
            )
            return 0
        if still > self._limits.silent + 2 * connection.smoothed_rtt:
            return 0
        unsent = connection.unsent(self.stream_id)
        return min(self._limit() - held, self._limits.most_unsent - unsent)

    def _limit(self) -> int:
        """Lead, two round trips and 200 ms of audio, as it looks on the wire.

        An unpaced listener has no lead; what the default one allows keeps a long path busy.
        """
        lead = self._plan.cursor.lead
        ahead = DEFAULT_LEAD if lead is None else lead
        seconds = ahead + 2 * self._peer.connection.smoothed_rtt + _MARGIN
        wanted = math.ceil(seconds / FRAME_DURATION) * self._delivery.frame_size
        return min(wanted, self._limits.most_unacknowledged)

    def _complete(self) -> None:
        """All is written. Who comes back for the last frames has nothing but their arrival to
        end its older connection with: that is waited for, though not for long.
        """
        cursor = self._plan.cursor
        if cursor.confirmed > cursor.start or cursor.next == cursor.start:
            self.done.set_result(None)
            return
        self.blocked = True
        loop = asyncio.get_running_loop()
        self._farewell = loop.call_later(self._limits.farewell, self.abandon)

    def _said_farewell(self) -> None:
        """The listener has all that was written, the farewell included."""
        if self._delivery.state is not DeliveryState.COMPLETE:
            self._reset()
            return
        plan = self._plan
        rtt = self._peer.connection.smoothed_rtt
        plan.host.confirm(plan.session, plan.cursor, plan.cursor.next, rtt=rtt)
        self.abandon()

    def _say_farewell(self, notice: bytes) -> None:
        """The NOTICE, and RESET_STREAM once it has arrived or after a second."""
        if not self._peer.http.write(self.stream_id, notice):
            self.abandon()
            return
        loop = asyncio.get_running_loop()
        self.blocked = True
        self._farewell = loop.call_later(self._limits.farewell, self._reset)

    def _reset(self) -> None:
        if self._farewell is not None:
            self._farewell.cancel()
        failure = self._delivery.failure
        code = failure.code if failure is not None else ErrorCode.INTERNAL
        self._peer.http.abort(self.stream_id, code.h3_error)
        if not self.done.done():
            self.done.set_result(None)
        self._peer.request_flush(self)
