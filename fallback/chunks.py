"""Plans as HTTP/1.1 chunks: whole frames, one write each, no more than the path takes.

Unless the listener says how many it wants, a chunk holds 5 to 10 frames.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fallback.meter import Meter, Standing
from fallback.watch import Watch
from tenuto.errors import ErrorCode, RequestError, TenutoError
from tenuto.media import FRAME_DURATION
from tenuto.telemetry.events import Event
from tenuto.telemetry.faults import describe_fault
from tenuto.web import PLAN, Delivery, DeliveryState, Plan
from tenuto.web.confirmation import Confirmations
from tenuto.web.parameters import MOST_FRAMES
from tenuto.web.problems import problem

__all__ = ["ABORT", "METER", "TUNE", "ChunkDoor", "ChunkSender"]

ABORT = "tenuto.abort"
"""Key of the ASGI state: ends the connection at once, unsent bytes and all."""

TUNE = "tenuto.tune"
"""Key of the ASGI state: sizes the kernel's send buffer for a stream of so many bytes/s."""

METER = "tenuto.meter"
"""Key of the ASGI state: the connection's `Meter`, or None where there is none."""

FRAMES_PER_CHUNK = 5
FIRST_FRAMES = 2

MOST_UNACKNOWLEDGED = 1.8
"""Seconds of audio, at the stream's rate, that a listener may not have acknowledged: with a chunk
on top less than 2 s are out of the session's reach.
"""

MOST_UNSENT = 4 * 1024
"""Bytes of it that may wait in the kernel, or even in this process, when more is written."""

_UNWATCHED = 16 * 1024
"""Bytes that any kernel takes at once: until there may be so many, nobody needs to ask it."""

_SETTLING = 1.0
"""Seconds that the first frame of a short stream may take to arrive."""

_LOOK_EVERY = 5
"""Ticks between looks at what has arrived, as long as there is little that has not."""


class ChunkSender:
    """The reader of one cursor on one HTTP/1.1 response.

    With a meter it writes only while the listener has yet to acknowledge less than two seconds
    of audio, and tells the session what has arrived. Without one, elsewhere than on Linux, what
    the bounded buffers below take counts as having arrived.
    """

    def __init__(self, plan: Plan, send: Send, *, deadline: float, meter: Meter | None) -> None:
        self._plan = plan
        self._send = send
        self._deadline = deadline
        self._meter = meter
        self._delivery = Delivery(
            plan, frames_per_chunk=FRAMES_PER_CHUNK, confirms=meter is not None
        )
        self._confirmations = Confirmations(plan.cursor.next)
        self._acknowledged = 0
        self._moved_at = plan.host.now()
        self._blocked = False
        self._look_in = 0
        self._writing_since: float | None = None
        self._wake = asyncio.Event()
        self._reason: TenutoError | None = None
        self._left = False

    def wake(self) -> None:
        self._look_in -= 1
        if self._blocked or not self._delivery.waits():
            self._wake.set()
        elif self._look_in < 0 and self._confirmations.waiting:
            # What is on its way may have arrived; the first frame's arrival is waited for.
            self._wake.set()

    def stop(self, reason: TenutoError) -> None:
        self._reason = reason
        self._wake.set()

    async def run(self) -> bool:
        """Send to the end; True if the body may end cleanly.

        Raises `TimeoutError` where nothing, not even a NOTICE, leaves within the deadline.
        """
        plan = self._plan
        plan.host.serve(plan.session, plan.cursor, self)
        if self._meter is not None:
            # The session is told at once how far away this listener is.
            rtt = self._meter.read().rtt
            plan.host.confirm(plan.session, plan.cursor, plan.cursor.next, rtt=rtt)
        async with asyncio.timeout(None) as limit:
            watch = self._watch(limit)
            try:
                return await self._send_all()
            finally:
                watch.stop()

    async def _send_all(self) -> bool:
        while not self._left:
            self._wake.clear()
            room = self._room()
            self._blocked = room <= 0 and self._reason is None
            data = b"" if self._blocked else self._next(room)
            if data:
                await self._write(data)
            if self._delivery.state is not DeliveryState.OPEN:
                return self._delivery.state is DeliveryState.COMPLETE
            if not data or self._delivery.waits():
                await self._wake.wait()
            else:
                # hypercorn's send neither raises nor yields once the client has gone: without
                # this an unpaced stream would never let the loop see the disconnect.
                await asyncio.sleep(0)
        return False

    async def settle(self) -> None:
        """Who comes back for the last frames has nothing but their arrival to end its older
        connection with: that is waited for, though not for long.
        """
        plan, meter = self._plan, self._meter
        cursor, end = plan.cursor, plan.host.now() + _SETTLING
        if meter is None:
            return
        try:
            while cursor.confirmed <= cursor.start < cursor.next and plan.host.now() < end:
                self._learn(meter.read())
                await asyncio.sleep(FRAME_DURATION)
        finally:
            # A client that has all it asked for closes; that it has is known all the same.
            self._learn(meter.read())

    def leave(self) -> None:
        """The client has gone: send nothing more, even where a cancellation went astray."""
        self._left = True
        self._wake.set()

    def _next(self, room: int) -> bytes:
        if self._reason is not None:
            return self._delivery.break_off(self._reason)
        if self._delivery.silent:
            return self._delivery.pull(FIRST_FRAMES)
        return self._delivery.pull(min(MOST_FRAMES, self._delivery.fitting, room))

    def _room(self) -> int:
        """Frames that may be written now; raises `OSError` once the connection is closed."""
        meter, delivery = self._meter, self._delivery
        if meter is None:
            return MOST_FRAMES
        most = MOST_UNACKNOWLEDGED * self._plan.session.audio.bytes_per_second
        if self._look_in > 0 and meter.written - self._acknowledged < min(_UNWATCHED, most / 4):
            return MOST_FRAMES
        standing = meter.read()
        self._learn(standing)
        if not standing.unacknowledged or self._plan.cursor.departure is not None:
            return MOST_FRAMES  # After a departure that is but the reason.
        room = FIRST_FRAMES
        if not delivery.silent:
            room = int((most - standing.unacknowledged) // delivery.frame_size)
            if room < min(FRAMES_PER_CHUNK, delivery.fitting):
                return 0
        # What cannot leave soon stays in the ring: the kernel's memory is not free either.
        if standing.unsent > MOST_UNSENT or meter.in_process(standing) > MOST_UNSENT:
            return 0
        return room

    def _learn(self, standing: Standing) -> None:
        """Tell the session what has arrived; give up a listener to whom nothing gets through."""
        plan = self._plan
        now = plan.host.now()
        if standing.acknowledged > self._acknowledged or not standing.unacknowledged:
            self._moved_at = now
            self._acknowledged = standing.acknowledged
            until = self._confirmations.reached(standing.acknowledged)
            if until is not None:
                self._look_in = _LOOK_EVERY
                plan.host.confirm(plan.session, plan.cursor, until, rtt=standing.rtt)
        elif now - self._moved_at > self._deadline and self._reason is None:
            self._give_up(standing)

    def _give_up(self, standing: Standing) -> None:
        assert self._meter is not None
        if self._meter.in_process(standing) > MOST_UNSENT:
            raise TimeoutError
        if self._meter.settled():
            self._moved_at = self._plan.host.now()
            return
        # There is room for a NOTICE in the kernel: whoever wakes up soon will read it.
        self._reason = RequestError(
            ErrorCode.TOO_SLOW,
            f"nothing was acknowledged for {self._deadline:g} s",
            remedy="resume on a better path",
        )

    def _watch(self, limit: asyncio.Timeout) -> Watch:
        """Once a deadline, instead of a timer for every write."""

        def look(now: float) -> float:
            since = self._writing_since
            if since is not None and now >= since + self._deadline:
                limit.reschedule(now)
            # No tick wakes a reader whose session is over: one that waits for room looks again.
            self._wake.set()
            return (now if since is None else since) + self._deadline

        return Watch(look, self._deadline)

    async def _write(self, data: bytes) -> None:
        plan, meter = self._plan, self._meter
        self._writing_since = plan.host.now()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        self._writing_since = None
        if meter is not None:
            self._confirmations.wrote(meter.written, plan.cursor.next)


class ChunkDoor:
    """ASGI middleware that knows plans, watches for the client leaving, and keeps quiet.

    A stream that must not look complete ends by returning early: hypercorn then closes the
    connection without the zero chunk (RFC 9112 section 8).
    """

    def __init__(
        self, app: ASGIApp, *, write_deadline: float, on_event: Callable[[Event], None]
    ) -> None:
        self._app = app
        self._deadline = write_deadline
        self._on_event = on_event

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        refusal = _refusal(scope)
        if refusal is not None:
            answer = problem(refusal)
            answer.headers["connection"] = "close"
            return await answer(scope, receive, send)
        if not scope["raw_path"].startswith(b"/"):
            scope = _origin_form(scope)
        scope["extensions"] = {**scope.get("extensions", {}), PLAN: {}}

        async def send_or_carry_out(message: Message) -> None:
            if message["type"] == PLAN:
                await self._carry_out(message["plan"], scope, receive, send)
            else:
                # A peer that resets or does not answer close_notify has gone: no news.
                with contextlib.suppress(OSError):
                    await send(message)

        try:
            await self._app(scope, receive, send_or_carry_out)
        except TenutoError:
            pass  # The app has told; what is left is to end without the zero chunk.
        except Exception as fault:  # noqa: BLE001  # a guard
            self._on_event(describe_fault("tcp", fault))
        return None

    async def _carry_out(self, plan: Plan, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope.get("state", {})
        if TUNE in state:
            state[TUNE](plan.session.audio.bytes_per_second)
        sender = ChunkSender(plan, send, deadline=self._deadline, meter=state.get(METER))
        sending = asyncio.create_task(sender.run())
        watching = asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait({sending, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            sender.leave()
            if not sending.done():
                sending.cancel()
            await asyncio.wait({sending, watching})
        if sending.cancelled():
            return
        fault = sending.exception()
        if isinstance(fault, TimeoutError):
            # Nobody reads: what is buffered will not be read either.
            state.get(ABORT, lambda: None)()
        elif isinstance(fault, OSError):
            pass  # The peer has gone.
        elif fault is not None:
            raise fault
        elif sending.result():
            with contextlib.suppress(OSError):  # of which TimeoutError is one
                async with asyncio.timeout(self._deadline):
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                await sender.settle()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _refusal(scope: Scope) -> RequestError | None:
    """What hypercorn would let pass and no server should."""
    version = scope["http_version"]
    if version not in ("1.0", "1.1"):
        return RequestError(
            ErrorCode.HTTP_VERSION,
            f"HTTP/{version[:8]} is not spoken here",
            remedy="use HTTP/1.1 over TLS, or HTTP/3",
        )
    names = {name.lower() for name, _ in scope["headers"]}
    if {b"content-length", b"transfer-encoding"} <= names:
        return RequestError(
            ErrorCode.BAD_REQUEST,
            "both Content-Length and Transfer-Encoding",
            remedy="send one of them (RFC 9112 section 6.3)",
        )
    return None


def _origin_form(scope: Scope) -> Scope:
    """A target in absolute form as the app expects it (RFC 9112 section 3.2.2).

    Its authority is what counts, whatever Host says.
    """
    scheme, separator, rest = scope["raw_path"].partition(b"://")
    if not separator or scheme.lower() not in (b"https", b"http"):
        return scope
    authority, slash, path = rest.partition(b"/")
    raw_path = slash + path or b"/"
    headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"host"]
    return {
        **scope,
        "raw_path": raw_path,
        "path": unquote_to_bytes(raw_path).decode("utf-8", "replace"),
        "headers": [(b"host", authority), *headers],
    }
