from __future__ import annotations

import asyncio

import pytest

from tenuto.errors import RequestError, SourceError
from tenuto.media import AudioFormat, Framer
from tenuto.sources import Counters, CountingSource, read_index
from tenuto.sources.counting import numbered_payload


@pytest.mark.parametrize("run_size", [1, 2, 3, 7, 639, 640, 641, 1697, 4063, 65535])
async def test_frames_carry_their_numbers_for_any_run_size(run_size: int) -> None:
    frames = 5 if run_size < 8 else 300
    source = CountingSource(frames=frames, run_size=run_size, counters=Counters())
    framer = Framer(source.format)
    indices = [
        read_index(piece.payload) async for run in source.stream() for piece in framer.push(run)
    ]
    assert indices == list(range(frames))
    assert framer.finish() is None
    assert (source.produced, source.finished) == (frames, True)
    assert source.counters == Counters(started=1, running=0, produced=frames, finished=1)


def test_a_payload_that_is_not_as_produced_is_told() -> None:
    payload = numbered_payload(70_000, 882)
    assert read_index(payload) == 70_000
    assert read_index(payload[:5]) == 70_000
    shifted = [payload[shift:] for shift in range(1, 8)]
    mixed = payload[:500] + numbered_payload(1, 882)[500:]
    for broken in (*shifted, mixed, payload[:3], b""):
        with pytest.raises(ValueError, match="payload"):
            read_index(broken)


async def test_it_fails_after_a_whole_number_of_frames() -> None:
    source = CountingSource(fail_after=3, run_size=1000, counters=Counters())
    received = 0

    async def read() -> None:
        nonlocal received
        async for run in source.stream():
            received += len(run)

    with pytest.raises(SourceError, match="after 3 frames"):
        await read()
    assert received == 3 * 640
    assert source.finished
    failing = CountingSource(fail_after=0, failure=KeyError("mine"), counters=Counters())
    with pytest.raises(KeyError, match="mine"):
        await anext(failing.stream())


async def test_it_blocks_until_it_is_cancelled() -> None:
    source = CountingSource(block_after=2, counters=Counters())
    stream = source.stream()
    assert read_index(await anext(stream)) == 0
    assert read_index(await anext(stream)) == 1
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await anext(stream)
    assert source.finished
    assert source.counters.running == 0


async def test_closing_runs_finally() -> None:
    source = CountingSource(counters=Counters())
    stream = source.stream()
    await anext(stream)
    assert source.counters.running == 1
    await stream.aclose()
    assert source.finished
    assert source.counters.running == 0


async def test_delays_come_before_the_first_run_and_between() -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    stream = CountingSource(first_delay=0.03, delay=0.02, counters=Counters()).stream()
    await anext(stream)
    assert loop.time() - start >= 0.029
    await anext(stream)
    assert loop.time() - start >= 0.048
    await stream.aclose()


@pytest.mark.parametrize("run_size", [0, -1, 65537])
def test_runs_are_bounded(run_size: int) -> None:
    with pytest.raises(RequestError, match="1 to 65536"):
        CountingSource(run_size=run_size)


def test_a_frame_must_hold_its_number() -> None:
    with pytest.raises(RequestError, match="too small"):
        CountingSource(format=AudioFormat(50))
