"""Frames into a pipe, whose reader may take its time."""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from tenuto.cli.conform import Conform
from tenuto.cli.errors import OutputError
from tenuto.media import AudioFormat, Frame

__all__ = ["PipeSink", "StdoutSink"]


class PipeSink:
    """`head` and raw samples on `descriptor`, written by a thread of its own and then closed.

    A player that takes them slowly must not hold up the connection. The thread is a daemon,
    so that nobody waits for a reader that never reads. At most one batch is under way.
    `failed` says what an error of writing is to be raised as.
    """

    account = None
    heard = None

    def flush(self, base: int) -> None:
        pass

    def pause(self, at: int) -> None:
        pass

    def resume(self) -> None:
        pass

    def __init__(
        self,
        descriptor: int,
        audio: AudioFormat,
        failed: Callable[[OSError], Exception],
        head: bytes = b"",
    ) -> None:
        self._descriptor = descriptor
        self._failed = failed
        self._head = head
        self._audio = audio
        self._conform = Conform(audio)
        self._loop = asyncio.get_running_loop()
        self._orders: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = (
            queue.SimpleQueue()
        )
        self._under_way = 0
        threading.Thread(target=self._work, name="pipe", daemon=True).start()

    @property
    def buffered(self) -> float:
        return self._under_way / self._audio.bytes_per_second

    async def open(self) -> None:
        head, self._head = self._head, b""
        if head:
            await self._write(head)

    async def write(self, frames: Sequence[Frame], audio: AudioFormat) -> None:
        await self.open()
        await self._write(self._conform.push(b"".join(f.payload for f in frames), audio))

    async def _write(self, samples: bytes) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        self._under_way = len(samples)
        self._orders.put((samples, done))
        try:
            await done
        except OSError as error:
            raise self._failed(error) from None
        self._under_way = 0

    async def finish(self) -> None:
        await self.open()
        rest = self._conform.finish()
        if rest:
            await self._write(rest)
        self._orders.put(None)

    async def abandon(self) -> None:
        self._orders.put(None)

    def _work(self) -> None:
        try:
            while (order := self._orders.get()) is not None:
                samples, done = order
                failure = _write_all(self._descriptor, samples)
                with suppress(RuntimeError):  # the loop has ended without us
                    self._loop.call_soon_threadsafe(_settle, done, failure)
                if failure is not None:
                    return
        finally:
            self._close()

    def _close(self) -> None:
        os.close(self._descriptor)


class StdoutSink(PipeSink):
    """Raw samples on standard output, which stays open."""

    def __init__(self, audio: AudioFormat) -> None:
        super().__init__(sys.stdout.fileno(), audio, _stdout_failed)

    def _close(self) -> None:
        pass


def _stdout_failed(error: OSError) -> Exception:
    return error if isinstance(error, BrokenPipeError) else OutputError(error)


def _write_all(descriptor: int, data: bytes) -> OSError | None:
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError as error:
        return error
    return None


def _settle(done: asyncio.Future[None], failure: OSError | None) -> None:
    if done.cancelled():
        return
    if failure is None:
        done.set_result(None)
    else:
        done.set_exception(failure)
