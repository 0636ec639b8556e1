"""Reads on while the caller is elsewhere, so that its own clock makes no trouble look late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from tenuto.client.held import Held
from tenuto.errors import TenutoError
from tenuto.media import Frame

__all__ = ["AHEAD", "Ahead", "Readable"]

AHEAD = 125
"""Frames held for the caller, beyond which nothing is read: the default lead, and a little. A
caller that takes a frame each 20 ms would learn of a dead path only when it has used up all
that was sent ahead, and what that was sent for is to hide just this."""


class Readable(Protocol):
    """What is read."""

    held: Held
    ending: TenutoError | StopAsyncIteration | None

    async def fill(self) -> None:
        """One step of reading, or of the way to another leg."""
        ...


class Ahead:
    """One task, from the first frame that somebody asked for to the end.

    It reads while fewer than `AHEAD` frames are held. Whoever waits for a frame waits for the
    task, so that to give up a wait disturbs nothing. What a step raised is raised to the caller,
    behind the frames that came before; the next call goes on.
    """

    def __init__(self, flow: Readable, check: Callable[[], None] = lambda: None) -> None:
        """`check` raises what else the caller is to be told, before anything."""
        self._flow = flow
        self._check = check
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._stepped = asyncio.Event()
        self._room = asyncio.Event()

    async def take(self) -> Frame:
        """The next frame. Raises how it ended, where there is none."""
        flow = self._flow
        self._check()
        while not flow.held.frames:
            if flow.ending is not None:
                raise flow.ending
            if self._closed:
                raise ValueError("the stream is closed")
            await self._step()
            self._check()
        self._room.set()
        return flow.held.take()

    def wake(self) -> None:
        """Whoever waits for a frame is to `check` again."""
        self._stepped.set()

    async def aclose(self) -> None:
        self._closed = True
        task, self._task = self._task, None
        self._stepped.set()
        if task is not None:
            task.add_done_callback(_untold)
            task.cancel()
            await asyncio.wait([task])

    async def _step(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._read())
        task = self._task
        self._stepped.clear()
        if not task.done():
            await self._stepped.wait()
        if task.done() and self._task is task:
            self._task = None
            await task

    async def _read(self) -> None:
        flow = self._flow
        try:
            while flow.ending is None:
                while len(flow.held.frames) >= AHEAD:
                    self._room.clear()
                    await self._room.wait()
                await flow.fill()
                self._stepped.set()
        finally:
            self._stepped.set()


def _untold(task: asyncio.Task[None]) -> None:
    """Nobody is left to be told what it raised."""
    if not task.cancelled():
        task.exception()
