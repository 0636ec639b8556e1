from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncGenerator, Callable

import numpy as np
import pytest

from tenuto.convert import Converter, resampled_length
from tenuto.errors import RequestError, SourceError
from tenuto.media import AudioFormat
from tenuto.sources import ConvertedSource, Mark, ToneSource
from tests.sources.listening import hear

SEED = 41
Item = bytes | Mark | AudioFormat
Script = Callable[[], AsyncGenerator[Item, None]]

LOW, HIGH, WIDE = AudioFormat(16000), AudioFormat(48000), AudioFormat(22050, 2)


class Scripted:
    """A source that does what a test says."""

    kind = "scripted"
    pausable = False
    patience: float | None = 7.0

    def __init__(self, format: AudioFormat, script: Script) -> None:
        self.format = format
        self.stream = script


def scripted(format: AudioFormat, *items: Item) -> Scripted:
    async def script() -> AsyncGenerator[Item, None]:
        for item in items:
            yield item

    return Scripted(format, script)


def noise(size: int) -> bytes:
    return random.Random(SEED).randbytes(size)


def whole(source: AudioFormat, target: AudioFormat, data: bytes) -> bytes:
    converter = Converter(source, target)
    return converter.push(data) + converter.finish()


async def test_it_is_the_source_in_another_format() -> None:
    data = noise(32000)
    source = ConvertedSource(scripted(LOW, data[:999], data[999:]), AudioFormat(48000, 2))
    assert (source.kind, source.pausable, source.patience) == ("scripted", False, 7.0)
    assert source.format == AudioFormat(48000, 2)
    assert (await hear(source)).audio == whole(LOW, source.format, data)


async def test_a_run_that_grows_is_cut() -> None:
    target = AudioFormat(192000, 2)
    data = noise(60_000)
    heard = await hear(ConvertedSource(scripted(AudioFormat(8000), data), target))
    assert heard.audio == whole(AudioFormat(8000), target, data)
    assert len(heard.audio) == 24 * 2 * len(data)


@pytest.mark.parametrize("target", [HIGH, AudioFormat(16000, 2), AudioFormat(8000)])
async def test_marks_stay_at_their_sample(target: AudioFormat) -> None:
    rng = random.Random(SEED)
    items: list[Item] = [Mark(0)]
    places = [0]
    position = 0
    for number in range(1, 60):
        run = noise(2 * rng.randint(0, 900))
        position += len(run) // 2
        items += [run, Mark(number), Mark(1000 + number)]
        places += [position, position]
    heard = await hear(ConvertedSource(scripted(LOW, *items), target))
    assert [offset for offset, _ in heard.marks] == [
        item.text_offset for item in items if isinstance(item, Mark)
    ]
    expected = [resampled_length(place, 16000, target.rate) for place in places]
    assert [at // target.bytes_per_sample for _, at in heard.marks] == expected, f"seed {SEED}"


async def test_a_change_of_format_is_not_heard_as_one() -> None:
    first, second, third = noise(16000), noise(44100), noise(9600)
    source = scripted(LOW, Mark(1), first, Mark(2), WIDE, Mark(3), second, HIGH, third, Mark(4))
    heard = await hear(ConvertedSource(source, HIGH))
    parts = [whole(LOW, HIGH, first), whole(WIDE, HIGH, second), third]
    assert heard.audio == b"".join(parts)
    assert heard.formats == []
    ends = [0, len(parts[0]), len(parts[0]), len(heard.audio)]
    assert heard.marks == list(zip([1, 2, 3, 4], ends, strict=True))


async def test_what_a_source_gave_before_it_failed_is_heard() -> None:
    data = noise(8000)

    async def script() -> AsyncGenerator[Item, None]:
        yield data
        raise SourceError("gone")

    parts = []
    with pytest.raises(SourceError, match="gone"):
        async for item in ConvertedSource(Scripted(LOW, script), HIGH).stream():
            assert isinstance(item, bytes)
            parts.append(item)
    assert b"".join(parts) == whole(LOW, HIGH, data)


async def test_leaving_ends_the_source_behind_it() -> None:
    ended: list[bool] = []

    async def script() -> AsyncGenerator[Item, None]:
        try:
            while True:
                yield noise(6400)
                await asyncio.sleep(0)
        finally:
            ended.append(True)

    stream = ConvertedSource(Scripted(LOW, script), HIGH).stream()
    await anext(stream)
    await stream.aclose()
    assert ended == [True]

    async def read() -> None:
        async for _ in ConvertedSource(Scripted(LOW, script), HIGH).stream():
            pass

    task = asyncio.create_task(read())
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert ended == [True, True]


async def test_without_the_library_it_is_refused_before_the_first_byte(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "soxr", None)
    with pytest.raises(RequestError, match=r"16000 Hz cannot become 48000 Hz.*tenuto\[audio\]"):
        ConvertedSource(scripted(LOW), HIGH)
    heard = await hear(ConvertedSource(scripted(LOW, b"\1\0"), AudioFormat(16000, 2)))
    assert heard.audio == b"\1\0\1\0"


async def test_a_tone_is_the_same_tone_at_another_rate() -> None:
    converted = ConvertedSource(ToneSource(440, 0.5, 22050), HIGH)
    heard = np.frombuffer((await hear(converted)).audio, "<i2").astype(int)
    direct = np.frombuffer((await hear(ToneSource(440, 0.5, 48000))).audio, "<i2").astype(int)
    assert len(heard) == len(direct)
    assert np.abs(heard - direct)[1000:-1000].max() <= 2
