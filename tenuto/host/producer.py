"""Pulls one source into one session, between its watermarks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from tenuto.errors import SourceError, TenutoError
from tenuto.media import AudioFormat, Framer, Piece
from tenuto.session import Session
from tenuto.sources.base import Mark, Source

__all__ = ["Producer"]


class Producer:
    """The task that feeds a session.

    `room` must be called whenever the session may want more again: a listener took frames,
    attached, or the session was resumed. `on_append` is called after each frame, `on_end`
    once when no more will come; `on_fault` gets what a source raised beside its own errors.
    """

    def __init__(
        self,
        session: Session,
        source: Source,
        *,
        on_append: Callable[[Session], None],
        on_end: Callable[[Session], None],
        on_fault: Callable[[Exception], None],
    ) -> None:
        self._session = session
        self._source = source
        self._on_append = on_append
        self._on_end = on_end
        self._on_fault = on_fault
        self._room = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.stray_bytes = 0
        self._task = asyncio.create_task(self._run(), name=f"producer {session.id}")

    def room(self) -> None:
        if not self._room.is_set() and self._session.wants_more(self._loop.time()):
            self._room.set()

    def cancel(self) -> None:
        """The source's `finally` runs; nothing waits for a listener."""
        self._task.cancel()

    async def wait(self) -> None:
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        session = self._session
        try:
            await self._pull(Framer(session.audio))
            session.finish()
        except TenutoError as error:
            session.fail(error)
        except Exception as error:  # noqa: BLE001  # someone else's code
            self._on_fault(error)
            session.fail(
                SourceError(
                    f"the {self._source.kind} source failed",
                    remedy="what was produced is kept; the server's log names the fault",
                )
            )
        self._on_end(session)

    async def _pull(self, framer: Framer) -> None:
        async with aclosing(self._source.stream()) as runs:
            async for run in runs:
                if isinstance(run, Mark):
                    framer.mark(run.text_offset)
                    continue
                if isinstance(run, AudioFormat):
                    raise SourceError(
                        f"{self._source.kind} goes on with {run.channels} channels at {run.rate} Hz"
                    )
                for piece in framer.push(run):
                    await self._append(piece)
        tail = framer.finish()
        self.stray_bytes = framer.stray_bytes
        if tail is not None:
            await self._append(tail)

    async def _append(self, piece: Piece) -> None:
        while not self._session.wants_more(self._loop.time()):
            self._room.clear()
            await self._room.wait()
        self._session.append(piece)
        self._on_append(self._session)
