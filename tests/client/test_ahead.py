"""What is read while the caller is elsewhere: so much, and nothing is lost by it."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.client.ahead import AHEAD, Ahead
from tenuto.client.held import Held
from tenuto.errors import TenutoError
from tenuto.media import Frame
from tests.support.virtualtime import run_in_virtual_time


class Source:
    """A frame each `every` seconds; the numbers in `breaks` raise first."""

    def __init__(
        self, count: int, every: float = 0.0, breaks: frozenset[int] = frozenset()
    ) -> None:
        self.held = Held()
        self.ending: TenutoError | StopAsyncIteration | None = None
        self.sent = 0
        self._count, self._every, self._breaks = count, every, set(breaks)

    async def fill(self) -> None:
        await asyncio.sleep(self._every)
        if self.sent in self._breaks:
            self._breaks.remove(self.sent)
            raise OSError(f"before {self.sent}")
        if self.sent == self._count:
            self.ending = StopAsyncIteration()
            return
        self.held.frames.append(Frame(self.sent, b"", 320))
        self.sent += 1


def test_a_caller_that_stops_stops_the_reading() -> None:
    async def script() -> None:
        source = Source(1000)
        ahead = Ahead(source)
        assert (await ahead.take()).sequence == 0
        await asyncio.sleep(9)
        assert len(source.held.frames) == AHEAD
        assert source.sent == AHEAD + 1
        for number in range(1, 11):
            assert (await ahead.take()).sequence == number
        await asyncio.sleep(9)
        assert source.sent == AHEAD + 11
        await ahead.aclose()

    run_in_virtual_time(script())


def test_a_wait_that_is_given_up_disturbs_nothing() -> None:
    async def script() -> None:
        ahead = Ahead(Source(50, every=0.02))
        got: list[int] = []
        while True:
            try:
                async with asyncio.timeout(0.013):
                    got.append((await ahead.take()).sequence)
            except TimeoutError:
                pass
            except StopAsyncIteration:
                break
        assert got == list(range(50))
        await ahead.aclose()

    run_in_virtual_time(script())


def test_what_a_step_raised_comes_behind_the_frames_and_is_no_end() -> None:
    async def script() -> None:
        ahead = Ahead(Source(6, breaks=frozenset({3})))
        assert (await ahead.take()).sequence == 0
        await asyncio.sleep(1)
        assert [(await ahead.take()).sequence for _ in range(2)] == [1, 2]
        with pytest.raises(OSError, match="before 3"):
            await ahead.take()
        assert [(await ahead.take()).sequence for _ in range(3)] == [3, 4, 5]
        for _ in range(2):
            with pytest.raises(StopAsyncIteration):
                await ahead.take()
        await ahead.aclose()

    run_in_virtual_time(script())


def test_a_closed_stream_says_so() -> None:
    async def script() -> None:
        ahead = Ahead(Source(9, every=5.0))
        waiting = asyncio.create_task(ahead.take())
        await asyncio.sleep(1)
        await ahead.aclose()
        with pytest.raises(ValueError, match="closed"):
            await waiting
        unread = Ahead(Source(9, breaks=frozenset({1})))
        await unread.take()
        await asyncio.sleep(1)
        await unread.aclose()  # Nobody asks for what it raised.

    run_in_virtual_time(script())
