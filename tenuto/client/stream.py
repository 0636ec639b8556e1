"""A stream of frames as an async iterator, with its account beside it."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import AsyncIterator

from tenuto.client.errors import LegError, StreamCut
from tenuto.client.events import Cut, Event, EventLog, FormatAnnounced
from tenuto.client.exchange import Leg, Response, Timings, Transport
from tenuto.client.problem import error_code
from tenuto.client.reception import Incomplete, Reception
from tenuto.errors import ErrorCode, RemoteProtocolError, TenutoError
from tenuto.media import AudioFormat, Frame

__all__ = ["Stream"]


class Stream(AsyncIterator[Frame]):
    """Frames in order: `async for frame in stream`.

    The iteration ends only after END with the right totals. Whatever else happens raises:
    `StreamCut` (resumable from `next_sequence`), `RemoteProtocolError` (the peer's bytes
    break the format). What has come before is yielded first. Not iterating stops the
    server: a bounded number of bytes is held here (`buffered`).
    """

    def __init__(
        self, leg: Leg, response: Response, timings: Timings, started: float, events: EventLog
    ) -> None:
        self._leg = leg
        self._response = response
        self._started = started
        self._events = events
        self._reception = Reception()
        self._frames: deque[Frame] = deque()
        self._format: AudioFormat | None = None
        self._changes: deque[FormatAnnounced] = deque()
        """Formats of frames that are held here, but the first one's."""
        self._ending: TenutoError | StopAsyncIteration | None = None
        self.timings = timings

    @property
    def format(self) -> AudioFormat:
        """What the samples of the frame are that was yielded last, or of the first one.

        A session may change its format between two frames.
        """
        if self._format is None:
            raise ValueError("the stream has not announced its format yet")
        return self._format

    @property
    def transport(self) -> Transport:
        return self._leg.transport

    @property
    def peer(self) -> str:
        """The address that answered."""
        return self._leg.peer

    @property
    def session(self) -> str | None:
        """The session's id, to resume it or to let others listen."""
        return self._response.headers.get("tenuto-session")

    @property
    def epoch(self) -> int:
        announced = self._reception.format
        return 0 if announced is None else announced.epoch

    @property
    def next_sequence(self) -> int:
        """The first frame that has not come yet; frames held here have."""
        return self._reception.next_sequence

    @property
    def received(self) -> int:
        """Frames that came, duplicates not counted."""
        return self._reception.received

    @property
    def samples(self) -> int:
        """Samples per channel that came."""
        return self._reception.samples

    @property
    def seconds(self) -> float:
        """How long they sound, each by the rate of its own format."""
        return self._reception.seconds

    @property
    def gaps(self) -> int:
        """Frames that will never come."""
        return self._reception.gaps

    @property
    def duplicates(self) -> int:
        """Frames that came again and were dropped."""
        return self._reception.duplicates

    @property
    def buffered(self) -> int:
        """Bytes held here that the caller has not asked for yet."""
        return self._leg.buffered + sum(len(frame.payload) for frame in self._frames)

    @property
    def ready(self) -> int:
        """Frames of the present format that the next steps give without waiting."""
        if not self._changes or not self._frames:
            return len(self._frames)
        return bisect_left(self._frames, self._changes[0].sequence, key=_sequence)

    @property
    def complete(self) -> bool:
        """END has come and its totals are right."""
        return isinstance(self._ending, StopAsyncIteration)

    @property
    def events(self) -> tuple[Event, ...]:
        """The newest events, at most 256."""
        return tuple(self._events.recent)

    async def prepare(self) -> None:
        """Wait for FORMAT; `open_stream` has done so already. Raises as iteration does."""
        while self._reception.format is None:
            if isinstance(self._ending, TenutoError):
                raise self._ending
            await self._fill()

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Frame:
        while not self._frames:
            if self._ending is not None:
                raise self._ending
            await self._fill()
        frame = self._frames.popleft()
        while self._changes and self._changes[0].sequence <= frame.sequence:
            self._format = self._changes.popleft().audio
        return frame

    async def _fill(self) -> None:
        try:
            data = await self._leg.read()
        except LegError as failure:
            self._cut(failure.reason, failure.code)
            return
        if not data:
            self._cut("the server ended the response without END")
            return
        if self.timings.first_byte is None:
            self.timings.first_byte = self._elapsed()
        self._digest(data)

    def _digest(self, data: bytes) -> None:
        try:
            frames, events = self._reception.feed(data)
        except RemoteProtocolError as error:
            self._ending = error
            self._events.add(Cut(error.message, self.next_sequence))
            return
        if frames and self.timings.first_frame is None:
            self.timings.first_frame = self._elapsed()
        self._frames.extend(frames)
        for event in events:
            self._note(event)
        finished = self._reception.finished
        if isinstance(finished, Incomplete):
            self._cut(finished.reason)
        elif finished is not None:
            self._ending = StopAsyncIteration()

    def _note(self, event: Event) -> None:
        if isinstance(event, FormatAnnounced):
            if self._format is None:
                self._format = event.audio
            else:
                self._change(event)
        self._events.add(event)

    def _change(self, event: FormatAnnounced) -> None:
        """At most one for each frame held: one that no frame followed is forgotten."""
        newest = self._frames[-1].sequence if self._frames else -1
        if self._changes and self._changes[-1].sequence > newest:
            self._changes.pop()
        self._changes.append(event)

    def _cut(self, reason: str, reset: ErrorCode | None = None) -> None:
        notice = self._reception.notice
        told = error_code(notice.code) if notice is not None else None
        if notice is not None and told is not None:
            reason = f"{notice.message or notice.code} ({notice.code})"
        self._ending = StreamCut(
            reason,
            session=self.session,
            epoch=self.epoch,
            next_sequence=self.next_sequence,
            code=told or reset or ErrorCode.INTERNAL,
            remedy=notice.remedy if notice is not None and told is not None else "",
        )
        self._events.add(Cut(reason, self.next_sequence))

    def _elapsed(self) -> float:
        return asyncio.get_running_loop().time() - self._started


def _sequence(frame: Frame) -> int:
    return frame.sequence
