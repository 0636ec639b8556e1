from __future__ import annotations

import asyncio

import pytest

from tenuto.errors import RequestError, SourceError
from tenuto.media import AudioFormat, Framer
from tenuto.sources import Counters, ModelSource, open_source, read_index
from tests.sources.listening import hear


def quick(**more: object) -> ModelSource:
    settings = {"first_token": 0.0, "rtf": 0.0, "counters": Counters(), **more}
    return ModelSource(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seconds", "step", "format"),
    [
        (1.0, 0.16, AudioFormat()),
        (0.5, 0.001, AudioFormat(8000)),
        (2.0, 2.0, AudioFormat(48000, 8)),
        (0.333, 0.077, AudioFormat(44100, 2)),
        (0.0, 0.16, AudioFormat()),
    ],
)
async def test_it_gives_numbered_frames_in_steps(
    seconds: float, step: float, format: AudioFormat
) -> None:
    source = quick(seconds=seconds, step=step, format=format)
    heard = await hear(source)
    assert len(heard.audio) == round(seconds * format.rate) * format.bytes_per_sample
    framer = Framer(format)
    pieces = list(framer.push(heard.audio))
    assert [read_index(piece.payload) for piece in pieces] == list(range(len(pieces)))
    counters = source.counters
    assert (counters.started, counters.running, counters.finished) == (1, 0, 1)
    assert counters.produced == len(pieces)


def test_the_same_seed_takes_the_same_times() -> None:
    one, same, other = (quick(rtf=0.5, jitter=0.4, seed=seed) for seed in (7, 7, 8))
    assert list(one.costs(50)) == list(same.costs(50)) != list(other.costs(50))
    spread = list(one.costs(500))[1:]
    assert 0.08 * 0.6 <= min(spread) < 0.055
    assert 0.105 < max(spread) <= 0.08 * 1.4


def test_it_stalls_before_every_nth_step() -> None:
    source = quick(first_token=0.3, rtf=0.25, stall_every=3, stall=2.0)
    costs = [round(cost, 9) for cost in source.costs(8)]
    assert costs == [0.3, 0.04, 0.04, 2.04, 0.04, 0.04, 2.04, 0.04]


async def test_steps_come_on_their_schedule() -> None:
    loop = asyncio.get_running_loop()
    source = quick(seconds=0.96, first_token=0.1, rtf=0.25)
    began, times = loop.time(), []
    async for _ in source.stream():
        times.append(loop.time() - began)
    due = [0.1 + 0.04 * n for n in range(6)]
    assert all(now >= when - 0.002 for now, when in zip(times, due, strict=True))
    assert times[-1] < 2


async def test_held_back_it_goes_on_from_there() -> None:
    loop = asyncio.get_running_loop()
    stream = quick(seconds=10, rtf=0.5).stream()
    await anext(stream)
    await asyncio.sleep(0.3)
    began = loop.time()
    await anext(stream)
    assert loop.time() - began < 0.04
    await anext(stream)
    assert loop.time() - began > 0.07
    await stream.aclose()


async def test_it_fails_after_so_many_steps() -> None:
    source = quick(fail_after=3)
    size = 0
    with pytest.raises(SourceError, match="after 3 steps"):
        async for run in source.stream():
            size += len(run)
    assert size == 3 * 8 * 640
    assert source.counters.running == 0


async def test_a_request_sets_it_up_and_bad_ones_name_the_parameter() -> None:
    request = {"source": "model", "seconds": "2.5", "step": "80", "rtf": "0", "seed": "9"}
    with pytest.raises(RequestError, match="none that this server has"):
        await open_source(request)
    source = await open_source(request, allow_test_sources=True)
    assert source == ModelSource(seconds=2.5, step=0.08, rtf=0, seed=9)
    assert (source.kind, source.pausable, source.patience) == ("model", True, None)
    for name, value in (
        ("step", "0"),
        ("step", "2001"),
        ("rtf", "11"),
        ("rtf", "-1"),
        ("jitter", "1.1"),
        ("stall", "601"),
        ("stall_every", "1.5"),
        ("fail_after", "x"),
        ("seed", "1000000001"),
        ("seconds", "86401"),
        ("first_token", "nan"),
    ):
        with pytest.raises(RequestError, match=f"^{name}="):
            await open_source({"source": "model", name: value}, allow_test_sources=True)
