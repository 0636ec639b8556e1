"""A source whose frames say when they were due."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

import pytest

from tenuto.errors import RequestError
from tenuto.media import AudioFormat
from tenuto.sources import ClockSource, clock_payload, list_sources, open_source, read_clock

FRAME = 20_000_000


def test_a_payload_says_number_and_due_time_and_is_silent_otherwise() -> None:
    payload = clock_payload(7, 0x0102030405060708, 640)
    assert payload == bytes.fromhex("00000007" + "0102030405060708") + bytes(628)
    assert read_clock(payload) == (7, 0x0102030405060708)
    assert read_clock(payload[:12]) == (7, 0x0102030405060708)
    for broken in (b"", payload[:11], payload[:-1] + b"\1"):
        with pytest.raises(ValueError, match="none of a clock source"):
            read_clock(broken)


async def test_each_frame_is_given_when_it_is_due_and_not_before() -> None:
    source = ClockSource(frames=5)
    assert (source.kind, source.pausable, source.format) == ("clock", False, AudioFormat(16000))
    before, told = time.monotonic_ns(), []
    async for run in source.stream():
        assert len(run) == source.format.frame_size
        told.append(read_clock(run))
        assert time.monotonic_ns() >= told[-1][1]
    assert [number for number, _ in told] == list(range(5))
    assert before <= told[0][1]
    assert [later - due for (_, due), (_, later) in pairwise(told)] == [FRAME] * 4


async def test_one_that_is_given_late_moves_no_other() -> None:
    stream = ClockSource().stream()
    _, first = read_clock(await anext(stream))
    await asyncio.sleep(0.07)
    # Three are overdue and come at once; the next one is on time again.
    loop = asyncio.get_running_loop()
    began = loop.time()
    late = [read_clock(await anext(stream)) for _ in range(3)]
    assert loop.time() - began < 0.01
    assert late == [(number, first + number * FRAME) for number in (1, 2, 3)]
    number, due = read_clock(await anext(stream))
    assert (number, due) == (4, first + 4 * FRAME)
    assert time.monotonic_ns() >= due
    await stream.aclose()


async def test_it_is_for_tests_only_and_live() -> None:
    with pytest.raises(RequestError, match="source='clock' is none that this server has"):
        await open_source({"source": "clock"})
    source = await open_source({"source": "clock", "frames": "3"}, allow_test_sources=True)
    assert source == ClockSource(frames=3)
    with pytest.raises(RequestError, match="rate= means nothing to a clock source"):
        await open_source({"source": "clock", "rate": "8000"}, allow_test_sources=True)
    (listed,) = [
        each
        for each in (await list_sources(test_sources=True))["sources"]
        if each["source"] == "clock"
    ]
    assert (listed["live"], listed["pausable"], listed["for_tests"]) == (True, False, True)
