"""What differs between systems: the heap is trimmed, as often as it is cheap."""

from __future__ import annotations

import asyncio
import ctypes
import sys

import pytest

from quicserver.platform import TRIM_INTERVAL, trim_heap
from tests.support.virtualtime import run_in_virtual_time


def trims(seconds: float, cost: float) -> list[float]:
    """When it trims within so many seconds, each taking `cost`."""
    moments: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        began, spent = loop.time(), 0.0

        def trim() -> None:
            nonlocal spent
            moments.append(loop.time() - began)
            spent += cost

        task = asyncio.create_task(trim_heap(trim, lambda: spent))
        await asyncio.sleep(seconds)
        task.cancel()

    run_in_virtual_time(main())
    return [round(moment) for moment in moments]


def test_the_heap_is_trimmed_every_half_minute() -> None:
    assert trims(100.0, cost=0.001) == [30, 60, 90]
    assert TRIM_INTERVAL == 30


def test_what_takes_long_is_done_seldom() -> None:
    assert trims(700.0, cost=0.020) == [30, 230, 430, 630]


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has the call")
async def test_the_call_is_there_and_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quicserver.platform.TRIM_INTERVAL", 0.001)
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        await asyncio.wait_for(trim_heap(), 1.0)
        return
    task = asyncio.create_task(trim_heap())
    await asyncio.sleep(0.05)
    assert not task.done()
    task.cancel()


async def test_without_it_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    await asyncio.wait_for(trim_heap(), 1.0)
