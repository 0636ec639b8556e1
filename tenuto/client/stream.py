"""A stream of frames as an async iterator, with its account and its controls beside it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Protocol

from tenuto.client.ahead import Ahead
from tenuto.client.answers import passes
from tenuto.client.control import REPORT_INTERVAL, WITHIN, Controls
from tenuto.client.errors import ConnectError
from tenuto.client.events import Event, EventLog
from tenuto.client.exchange import Timings, Transport
from tenuto.client.flow import Flow
from tenuto.client.paths import Paths
from tenuto.client.target import Value
from tenuto.errors import ErrorCode, RequestError, TenutoError
from tenuto.media import AudioFormat, Frame

__all__ = ["NetworkWatch", "Stream"]


class NetworkWatch(Protocol):
    """Calls back when this machine's network has changed."""

    def start(self) -> None: ...
    def close(self) -> None: ...


class Stream(AsyncIterator[Frame]):
    """Frames in order: `async for frame in stream`.

    The iteration ends only after END with the right totals. Where a connection is lost it goes
    on over another one, with nothing missing and nothing twice, and the events tell. What
    cannot be repaired raises: `StreamCut` (resumable from `next_sequence`),
    `RemoteProtocolError` (the peer's bytes break the format). What has come before is yielded
    first. What `on_event` raises is raised at once, and the next step goes on. Not iterating
    stops the server: a bounded number of bytes is held here (`buffered`).
    """

    def __init__(
        self,
        flow: Flow,
        controls: Controls,
        events: EventLog,
        paths: Paths,
        changes: Callable[[Callable[[], None], Sequence[str]], NetworkWatch] | None = None,
    ) -> None:
        self._flow = flow
        self._ahead = Ahead(flow, events.check)
        events.on_raised = self._ahead.wake
        self._controls = controls
        self._events = events
        self._heard: int | None = None
        self._told: int | None = None
        self._reporter: asyncio.Task[None] | None = None
        self._unanswered: tuple[dict[str, Value], str] | None = None
        """What a flush says that the server may have heard, and its key."""
        flow.on_park = controls.let_go
        self._paths = paths
        self._changes: NetworkWatch | None = None
        if changes is not None:
            hosts = [address.sockaddr[0] for address in paths.addresses]
            self._changes = changes(self.rebind, hosts)

    @property
    def format(self) -> AudioFormat:
        """What the samples of the frame are that was yielded last, or of the first one.

        A session may change its format between two frames.
        """
        if self._flow.held.format is None:
            raise ValueError("the stream has not announced its format yet")
        return self._flow.held.format

    @property
    def transport(self) -> Transport:
        """What carries the stream now, or did last."""
        return self._flow.leg.transport

    @property
    def peer(self) -> str:
        """The address that answered."""
        return self._flow.leg.peer

    @property
    def timings(self) -> Timings:
        """Those of the first leg."""
        return self._flow.timings

    @property
    def session(self) -> str | None:
        """The session's id, to resume it or to let others listen."""
        return self._flow.session

    @property
    def epoch(self) -> int:
        announced = self._flow.reception.format
        return 0 if announced is None else announced.epoch

    @property
    def next_sequence(self) -> int:
        """The first frame that has not come yet; frames held here have."""
        return self._flow.reception.next_sequence

    @property
    def received(self) -> int:
        """Frames that came, duplicates not counted."""
        return self._flow.reception.received

    @property
    def samples(self) -> int:
        """Samples per channel that came."""
        return self._flow.reception.samples

    @property
    def seconds(self) -> float:
        """How long they sound, each by the rate of its own format."""
        return self._flow.reception.seconds

    @property
    def gaps(self) -> int:
        """Frames that will never come."""
        return self._flow.reception.gaps

    @property
    def duplicates(self) -> int:
        """Frames that came again and were dropped."""
        return self._flow.reception.duplicates

    @property
    def buffered(self) -> int:
        """Bytes held here that the caller has not asked for yet."""
        flow = self._flow
        return flow.leg.buffered + sum(len(frame.payload) for frame in flow.held.frames)

    @property
    def ready(self) -> int:
        """Frames of the present format that the next steps give without waiting."""
        return self._flow.held.ready

    @property
    def complete(self) -> bool:
        """END has come and its totals are right."""
        return isinstance(self._flow.ending, StopAsyncIteration)

    @property
    def interrupted(self) -> bool:
        """The connection is lost, and another is on its way."""
        return self._flow.interrupted

    @property
    def paused(self) -> bool:
        """By `pause` of this stream."""
        return self._flow.paused

    @property
    def parked(self) -> bool:
        """Paused, and there is no connection any more."""
        return self._flow.parking.parked

    @property
    def events(self) -> tuple[Event, ...]:
        """The newest events, at most 256."""
        return tuple(self._events.recent)

    async def prepare(self) -> None:
        """Wait for FORMAT; `open_stream` has done so already. Raises as iteration does."""
        flow = self._flow
        if self._changes is not None:
            self._changes.start()
        self._events.check()
        while flow.reception.format is None:
            if isinstance(flow.ending, TenutoError):
                raise flow.ending
            await flow.fill()
            self._events.check()

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Frame:
        return await self._ahead.take()

    async def move(self, transport: Transport) -> None:
        """Go on over `transport`; the present leg ends when the new one has its first frame.

        Returns then. Raises `ConnectError` or `RequestError` where the new one comes to nothing:
        the stream stays where it is. While it is interrupted, this says what is tried next, once.
        """
        await self._flow.move(transport)

    def rebind(self) -> None:
        """The network has changed: go on from another port, or over another connection.

        At once and without harm where it has not. Events tell what came of it.
        """
        self._controls.leave()
        self._flow.rebind()
        self._paths.network_changed()  # last: what tells networks apart may be the caller's own

    # Control

    async def pause(self) -> dict[str, Any]:
        """Have the server send nothing until `resume`; its answer, `expires_in` among it.

        Like the other commands it concerns all listeners of the session, and raises
        `RequestError` or `ConnectError` without harm to the audio. After ten seconds, or
        where it is lost, the connection is closed (`parked`), and nothing is sent any more.
        """
        with self._flow.parking.held():
            answer = await self._command("pause")
            self._flow.pause(answer.get("expires_in"))
        return answer

    async def resume(self) -> dict[str, Any]:
        """Go on after a `pause`, over a new connection where that was closed.

        Where the session is gone, and its source is known and can be asked for again, a new one
        goes on (`Restarted`). Else raises `RequestError`; and `ConnectError` where the server
        cannot be reached: then it may be said again.
        """
        with self._flow.parking.held():
            answer = await self._command("resume")
            self._flow.unpause()
        return answer

    async def flush(self, params: Mapping[str, Value] | None = None) -> dict[str, Any]:
        """Drop what is not heard yet, and say what `params` name instead, as `/v1/speak` does.

        Frames of what was dropped are not yielded any more once the new epoch has begun. Where
        `ConnectError` leaves it unknown whether the server has heard, the same may be said again:
        it is done once.
        """
        said, session = dict(params or {}), self._flow.session
        if self._unanswered is None or self._unanswered[0] != said:
            self._unanswered = said, secrets.token_urlsafe(12)
        flush, epoch = self._unanswered, None
        self._flow.sources.replacing(params)
        try:
            with self._flow.parking.held():
                answer = await self._command("flush", said, flush[1])
                epoch = answer.get("epoch")
                if self._flow.paused and self._flow.session != session:
                    await self._command("pause")  # The one that was paused is gone.
        except TenutoError as error:
            if not isinstance(error, ConnectError) and self._unanswered is flush:
                self._unanswered = None
            raise
        finally:
            self._flow.sources.replaced(epoch, params)
        if self._unanswered is flush:
            self._unanswered = None
        return answer

    def heard(self, sequence: int) -> None:
        """The listener has heard frame `sequence`; the server is told so once a second at most.

        So it sends no more than the lead beyond it, and keeps the session. Nothing fails.
        """
        self._heard = sequence
        self._flow.unheard.heard(sequence, asyncio.get_running_loop().time())
        if self._reporter is None and not self._flow.closed:
            self._reporter = asyncio.create_task(self._report())

    async def aclose(self) -> None:
        if self._changes is not None:
            self._changes.close()
        # Each is closed, also where the one before was cancelled.
        async with AsyncExitStack() as closing:
            closing.push_async_callback(self._flow.aclose)
            closing.push_async_callback(self._controls.aclose)
            closing.push_async_callback(self._ahead.aclose)
            if self._reporter is not None:
                self._reporter.cancel()
                await asyncio.wait([self._reporter])

    async def _command(
        self, name: str, fields: Mapping[str, Value] | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Over the leg that carries the stream, and where it is left meanwhile over the next.

        So too where the session is another one by then: whatever it was, it is to be done there.
        """
        session = self._flow.session
        if session is None:
            raise RequestError(
                ErrorCode.BAD_REQUEST,
                "the server has named no session to command",
                remedy="is it a Tenuto server?",
            )
        loop = asyncio.get_running_loop()
        until = loop.time() + WITHIN
        while True:
            leg = self._flow.leg
            try:
                await self._flow.unpark()
                leg, session = self._flow.leg, self._flow.session or session
                answer = await self._controls.command(
                    leg, session, name, fields or {}, key, until - loop.time()
                )
                if self._flow.session == session:
                    return answer
            except (ConnectError, RequestError) as error:
                lasting = isinstance(error, RequestError) and not passes(error, self.parked)
                if lasting or not await self._flow.left(leg, until - loop.time()):
                    raise

    async def _report(self) -> None:
        while True:
            flow, wait = self._flow, 0.0
            quiet = flow.paused or flow.interrupted or flow.ending is not None
            if self._heard is not None and self._heard != self._told and not quiet:
                self._told = self._heard
                if flow.session is not None:
                    wait = await self._controls.report(flow.leg, flow.session, self._told)
            await asyncio.sleep(max(REPORT_INTERVAL, wait))
