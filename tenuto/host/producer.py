"""Pulls one source into one session, between its watermarks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from tenuto.errors import SourceError, TenutoError
from tenuto.media import AudioFormat, Framer, Piece
from tenuto.session import Session
from tenuto.sources.base import Mark, Source

__all__ = ["MAX_HELD", "Producer"]

MAX_HELD = 32 * 1024 * 1024
"""Bytes in one run that are still taken from a source: ten minutes of PCM at 24 kHz. What the
session has no room for yet is held by back-pressure; our own sources yield far less."""


class Producer:
    """The task that feeds a session.

    `room` must be called whenever the session may want more again: a listener took frames,
    attached, or the session was resumed. `on_append` is called after each frame, `on_end`
    once when no more will come; `on_fault` gets what a source raised beside its own errors.
    `on_reformat` puts a new format into the session, or raises what the session then fails with.
    `on_over` is called when the source's `finally` has run. After `cancel` nothing reaches the
    session any more, whatever the source does.
    """

    def __init__(
        self,
        session: Session,
        source: Source,
        *,
        on_append: Callable[[Session], None],
        on_end: Callable[[Session], None],
        on_fault: Callable[[Exception], None],
        on_reformat: Callable[[Session, AudioFormat], None],
        on_over: Callable[[Producer], None] = lambda producer: None,
    ) -> None:
        self._session = session
        self._source = source
        self._on_append = on_append
        self._on_end = on_end
        self._on_fault = on_fault
        self._on_reformat = on_reformat
        self._room = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._framer = Framer(session.audio)
        self._cancelled = False
        self.held = 0
        """Bytes of the run in hand: what a source gave beyond what the session may take."""
        self._task = asyncio.create_task(self._run(), name=f"producer {session.id}")
        self._task.add_done_callback(lambda task: on_over(self))

    @property
    def stray_bytes(self) -> int:
        """Bytes that were no whole sample when the source ended or changed its format."""
        return self._framer.stray_bytes

    @property
    def session_id(self) -> str:
        return self._session.id

    @property
    def kind(self) -> str:
        return self._source.kind

    def room(self) -> None:
        if not self._room.is_set() and self._session.wants_more(self._loop.time()):
            self._room.set()

    def cancel(self) -> None:
        """The source's `finally` runs; nothing waits for a listener."""
        self._cancelled = True
        self._task.cancel()

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait until the source's `finally` has run; False if that takes longer."""
        done, _ = await asyncio.wait([self._task], timeout=timeout)
        return bool(done)

    async def _run(self) -> None:
        session = self._session
        failure: TenutoError | None = None
        try:
            await self._pull()
        except TenutoError as error:
            failure = error
        except Exception as error:  # noqa: BLE001  # someone else's code
            self._on_fault(error)
            failure = SourceError(
                f"the {self._source.kind} source failed",
                remedy="what was produced is kept; the server's log names the fault",
            )
        if self._cancelled:
            return  # The session may have another source by now.
        if failure is None:
            session.finish()
        else:
            session.fail(failure)
        self._on_end(session)

    async def _pull(self) -> None:
        try:
            async with aclosing(self._source.stream()) as runs:
                while (run := await self._next(runs)) is not None:
                    await self._take(run)
        except Exception:
            # It gave these samples before it failed: they are as good as the others.
            await self._tail(self._framer.finish())
            raise
        await self._tail(self._framer.finish())

    async def _next(
        self, runs: AsyncGenerator[bytes | Mark | AudioFormat, None]
    ) -> bytes | Mark | AudioFormat | None:
        patience = self._source.patience
        if patience is None:
            return await anext(runs, None)
        try:
            async with asyncio.timeout(patience) as waiting:
                return await anext(runs, None)
        except TimeoutError:
            if not waiting.expired():
                raise
            raise SourceError(
                f"the {self._source.kind} source gave nothing for {patience:g} s",
                remedy="what was produced is kept; start a new session to go on",
            ) from None

    async def _take(self, run: object) -> None:
        match run:
            case bytes() | bytearray() | memoryview():
                await self._cut(bytes(run))
            case Mark(text_offset):
                self._framer.mark(text_offset)
            case AudioFormat():
                if run != self._framer.format:
                    await self._tail(self._framer.reformat(run))
                    self._on_reformat(self._session, run)
            case _:
                raise SourceError(
                    f"the {self._source.kind} source yielded {type(run).__name__}, no bytes"
                )
        if self._session.live or not (isinstance(run, bytes) and run):
            # No room is waited for: a source that never waits itself would own the event loop.
            await asyncio.sleep(0)

    async def _cut(self, run: bytes) -> None:
        if len(run) > MAX_HELD:
            raise SourceError(
                f"the {self._source.kind} source yielded {len(run)} bytes at once; "
                f"{MAX_HELD} at most can be held",
                remedy="have it yield shorter runs",
            )
        self.held = len(run)
        try:
            for piece in self._framer.push(run):
                await self._append(piece)
                self.held -= len(piece.payload)
        finally:
            self.held = 0

    async def _tail(self, piece: Piece | None) -> None:
        if piece is not None:
            await self._append(piece)

    async def _append(self, piece: Piece) -> None:
        while not self._session.wants_more(self._loop.time()) and not self._cancelled:
            self._room.clear()
            await self._room.wait()
        if self._cancelled:
            # A source that takes no notice of its cancellation is told once more.
            raise asyncio.CancelledError
        self._session.append(piece)
        self._on_append(self._session)
