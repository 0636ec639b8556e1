"""The test doubles break the rules that they say they break."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from tenuto.sources import MAX_RUN_SIZE
from tests.support.bad_sources import (
    BadSource,
    ClosesBadly,
    FailsInMidFrame,
    GivesAllAtOnce,
    GivesNothing,
    GivesOddBytes,
    HogsTheLoop,
    SwallowsCancellation,
)


async def taken(source: BadSource) -> bytes:
    return b"".join([run async for run in source.stream()])


async def test_they_do_what_they_say() -> None:
    failing = FailsInMidFrame()
    with pytest.raises(ZeroDivisionError):
        await taken(failing)
    assert len(await taken(GivesAllAtOnce())) == 600 * 32000 > MAX_RUN_SIZE
    assert len(await taken(GivesOddBytes())) % 2 == 1
    assert await taken(HogsTheLoop(most=10)) == b""
    with pytest.raises(RuntimeError, match="gone already"):
        await taken(ClosesBadly(frames=2))
    with pytest.raises(RuntimeError, match="gone already"):
        async with aclosing(ClosesBadly().runs()) as runs:
            await anext(runs)
    nothing = GivesNothing(frames=1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await taken(nothing)
    assert (nothing.entered, nothing.left) == (1, 1)


async def test_one_swallows_its_cancellation_for_a_while() -> None:
    source = SwallowsCancellation(seconds=0.1)
    task = asyncio.create_task(taken(source))
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.sleep(0.02)
    assert not task.done()
    assert len(await task) == 640
    assert source.cancelled == 1
