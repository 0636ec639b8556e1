from __future__ import annotations

import asyncio
import os
import threading

import numpy as np
import pytest

from tenuto.errors import ErrorCode, RequestError
from tenuto.sources import Mark, open_speech, shared_engine
from tenuto.sources.voices import choose_voice
from tests.sources.listening import hear

LONG = "This sentence is one of many that make a long text, and it has a comma. " * 40
ACCENTS = "Hello na\u00efve Caf\u00e9 \u00fcber dogs"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Hello world, this is a sentence of speech.", "en"),
        ("\u4f60\u597d\uff0c\u4e16\u754c\u3002\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002", "cmn"),
        ("Stra\u00dfe, gr\u00f6\u00dfer und sch\u00f6n.", "de"),
    ],
)
async def test_speech_is_sound_of_a_likely_length(text: str, language: str) -> None:
    source = await open_speech(text, language)
    assert (source.kind, source.format.rate, source.format.channels) == ("speech", 22050, 1)
    heard = await hear(source)
    assert 1 < len(heard.audio) / source.format.bytes_per_second < 10
    samples = np.frombuffer(heard.audio, dtype="<i2").astype(float)
    assert np.sqrt((samples**2).mean()) > 500


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        (ACCENTS, "en", ACCENTS),
        (f"go \U0001f600 e\u0301te\u0301 {FAMILY} end", "en", "go \U0001f600 e\u0301te\u0301 end"),
        ("\u4f60\uff0c\u4e16\u754c\u3002\u5929\u6c14", "cmn", "\u4f60 \u4e16 \u754c \u5929 \u6c14"),
        ("\U0001f600\U0001f600 first", "en", "\U0001f600 first"),
        ("\0\0tab\tnew\nline", "en", "tab new line"),
    ],
)
async def test_marks_stand_where_the_words_begin(text: str, language: str, words: str) -> None:
    heard = await hear(await open_speech(text, language))
    offsets = [offset for offset, _ in heard.marks]
    assert offsets == sorted(set(offsets))
    assert all(0 <= offset < len(text) for offset in offsets)
    position = 0
    for word in words.split():
        position = text.index(word, position)
        assert position in offsets, f"no mark at {word!r} in {offsets}"
        position += len(word)


async def test_marks_lie_where_the_sound_of_the_words_begins() -> None:
    heard = await hear(await open_speech("Wait. Now"))
    (first, start), (second, later) = heard.marks
    assert (first, start, second) == (0, 0, 6)
    assert later % 2 == 0
    samples = np.abs(np.frombuffer(heard.audio, dtype="<i2").astype(int))
    # The full stop is silence: it ends where the mark is.
    assert samples[later // 2 - 2000 : later // 2 - 200].max() < 100
    assert samples[later // 2 : later // 2 + 3000].max() > 3000


async def test_marks_of_a_long_text_count_from_its_start() -> None:
    heard = await hear(await open_speech(LONG))
    offsets = [offset for offset, _ in heard.marks]
    assert offsets == sorted(set(offsets))
    expected = [n for n in range(len(LONG)) if LONG[n] != " " and (not n or LONG[n - 1] == " ")]
    assert offsets == expected


@pytest.mark.parametrize("text", ["...", "!", "-", "\u3002", "\u200d", "\ue000", "\U000e0001"])
async def test_a_text_without_sound_ends(text: str) -> None:
    async with asyncio.timeout(5):
        heard = await hear(await open_speech(text))
    assert len(heard.audio) < 5 * 44100


@pytest.mark.parametrize("text", ["a", "\u4f60", "7", "\U0001f600"])
async def test_one_character_is_spoken(text: str) -> None:
    heard = await hear(await open_speech(text))
    assert len(heard.audio) > 5000
    assert heard.marks == [(0, 0)]


@pytest.mark.parametrize(
    ("language", "identifier"),
    [
        ("en", "gmw/en"),
        ("EN_us", "gmw/en-US"),
        ("en-AU", "gmw/en"),
        ("cmn", "sit/cmn"),
        ("zh-CN", "sit/cmn"),
        ("zh-Hant-TW", "sit/cmn"),
        ("yue", "sit/yue"),
        ("pt-BR", "roa/pt-BR"),
        ("de-DE-x-mine", "gmw/de"),
    ],
)
async def test_a_language_tag_finds_its_voice(language: str, identifier: str) -> None:
    assert choose_voice(await shared_engine().voices(), language) == identifier


@pytest.mark.parametrize(
    ("language", "near"),
    [("english", "en"), ("xx", "such as"), ("", "cmn"), ("e" * 9999, "cmn"), ("\ud800", "en")],
)
async def test_an_unknown_language_is_told_what_there_is(language: str, near: str) -> None:
    with pytest.raises(RequestError, match=near) as refusal:
        await open_speech("hello", language)
    assert refusal.value.code is ErrorCode.UNKNOWN_VOICE
    assert len(str(refusal.value)) < 200
    str(refusal.value).encode()


async def test_a_voice_that_would_say_nothing_is_not_offered() -> None:
    with pytest.raises(RequestError):
        await open_speech("hello", "fo")


async def test_a_listener_who_does_not_read_holds_nobody_up() -> None:
    idle = [(await open_speech(LONG)).stream() for _ in range(5)]
    for stream in idle:
        await anext(stream)
    async with asyncio.timeout(5):
        heard = await hear(await open_speech(LONG))
    assert len(heard.audio) > 100 * 44100
    rest = [item async for item in idle[0] if not isinstance(item, Mark)]
    assert abs(sum(map(len, rest)) - len(heard.audio)) < 0.05 * len(heard.audio)
    for stream in idle[1:]:
        await stream.aclose()


async def test_sessions_at_the_same_time_each_get_their_own() -> None:
    texts = [f"Number {n}. " + "word " * (n + 1) * 20 for n in range(8)]
    alone = [await hear(await open_speech(text)) for text in texts]
    heard = await asyncio.gather(*[hear(await open_speech(text)) for text in texts])
    for one, other in zip(alone, heard, strict=True):
        assert [mark for mark, _ in one.marks] == [mark for mark, _ in other.marks]
        assert abs(len(one.audio) - len(other.audio)) < 4410


async def test_leaving_in_mid_clause_leaves_the_engine_usable() -> None:
    source = await open_speech(LONG)
    await hear(await open_speech("warm"))
    threads, process = set(threading.enumerate()), shared_engine().pid
    files = len(os.listdir("/proc/self/fd"))

    async def listen() -> None:
        async for _ in source.stream():
            await asyncio.sleep(0)

    for n in range(50):
        if n % 2:
            stream = source.stream()
            await anext(stream)
            await stream.aclose()
        else:
            task = asyncio.create_task(listen())
            await asyncio.sleep(0.0005 * (n % 7))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()
    heard = await hear(await open_speech("Hello again world."))
    assert [offset for offset, _ in heard.marks] == [0, 6, 12]
    # Those of earlier tests may have ended meanwhile.
    assert set(threading.enumerate()) <= threads
    assert shared_engine().pid == process
    assert len(os.listdir("/proc/self/fd")) == files
