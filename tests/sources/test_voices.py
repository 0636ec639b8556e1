"""Voices by language, by name and by both; speed and pitch; nobody gets another's."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from tenuto.errors import ErrorCode, RequestError
from tenuto.sources import open_source, open_speech, shared_engine
from tenuto.sources.voices import find_voice, pick_voice
from tests.sources.listening import hear

TEXT = "Many men may name a moment memorable."


async def picked(language: str | None = None, name: str | None = None) -> str:
    engine = shared_engine()
    return pick_voice(await engine.voices(), await engine.variants(), language, name)


def pitch_of(audio: bytes) -> float:
    """The fundamental in Hz, by autocorrelation: the median over the louder half of it."""
    samples = np.frombuffer(audio, "<i2").astype(float)
    blocks = [samples[n : n + 2205] for n in range(0, len(samples) - 2205, 2205)]
    found = []
    for block in sorted(blocks, key=lambda each: -float((each**2).sum()))[: len(blocks) // 2]:
        spectrum = np.fft.rfft(block * np.hanning(len(block)), 8192)
        wave = np.fft.irfft(np.abs(spectrum) ** 2)
        low, high = 22050 // 500, 22050 // 50
        found.append(22050 / (low + int(np.argmax(wave[low:high]))))
    return float(np.median(found))


async def spoken(**manner: int | str) -> bytes:
    return (await hear(await open_speech(TEXT, **manner))).audio  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("language", "name", "voice"),
    [
        (None, None, "gmw/en"),
        ("de", None, "gmw/de"),
        (None, "en-us", "gmw/en-US"),
        (None, "EN_US", "gmw/en-US"),
        (None, "gmw/en-US", "gmw/en-US"),
        (None, "english (america)", "gmw/en-US"),
        (None, "English_(America)", "gmw/en-US"),
        (None, "en-us+f3", "gmw/en-US+f3"),
        (None, "cmn+WHISPER", "sit/cmn+whisper"),
        ("en", "en-us+f3", "gmw/en-US+f3"),
        ("en", "en-GB-scotland", "gmw/en-GB-scotland"),
        ("en-AU", "en-us", "gmw/en-US"),
        ("zh-CN", "cmn", "sit/cmn"),
    ],
)
async def test_a_voice_is_found(language: str | None, name: str | None, voice: str) -> None:
    assert await picked(language, name) == voice


@pytest.mark.parametrize(
    ("language", "name", "code", "found"),
    [
        (None, "en-uz", ErrorCode.UNKNOWN_VOICE, "no voice 'en-uz'.*en-us"),
        (None, "englisch (amerika)", ErrorCode.UNKNOWN_VOICE, "english"),
        (None, "", ErrorCode.UNKNOWN_VOICE, "such as"),
        (None, "+f3", ErrorCode.UNKNOWN_VOICE, "no voice ''"),
        (None, "en-us+", ErrorCode.UNKNOWN_VOICE, "no variant ''"),
        (None, "en-us+f33", ErrorCode.UNKNOWN_VOICE, "no variant 'f33'.*f3"),
        (None, "en-us+../../en", ErrorCode.UNKNOWN_VOICE, "no variant"),
        (None, "en-us+f3+f4", ErrorCode.UNKNOWN_VOICE, "no variant 'f3.f4'"),
        (None, "x" * 5000, ErrorCode.UNKNOWN_VOICE, "no voice 'x{64}'"),
        (None, "\ud800", ErrorCode.UNKNOWN_VOICE, "such as"),
        ("xx", "en-us", ErrorCode.UNKNOWN_VOICE, "no voice speaks 'xx'"),
        ("de", "en-us", ErrorCode.BAD_REQUEST, "contradict each other.*speaks en-us"),
        ("en-GB", "en-us", ErrorCode.BAD_REQUEST, "contradict"),
        ("en", "cmn", ErrorCode.BAD_REQUEST, "contradict"),
    ],
)
async def test_an_unknown_one_is_told_what_comes_near(
    language: str | None, name: str, code: ErrorCode, found: str
) -> None:
    with pytest.raises(RequestError, match=found) as refusal:
        await picked(language, name)
    assert refusal.value.code is code
    assert len(str(refusal.value)) < 300
    str(refusal.value).encode("utf-8", "backslashreplace")


async def test_every_voice_is_found_by_its_own_names() -> None:
    voices = await shared_engine().voices()
    for voice in voices:
        assert find_voice(voices, voice.identifier) == voice
        assert find_voice(voices, voice.name).name.lower() == voice.name.lower()


async def test_speed_and_pitch_are_heard() -> None:
    usual, slow, fast = [len(await spoken(speed=speed)) for speed in (175, 80, 450)]
    assert slow > 1.7 * usual
    assert fast < 0.6 * usual
    low, middle, high = [pitch_of(await spoken(pitch=pitch)) for pitch in (0, 50, 99)]
    assert low < 0.9 * middle < 0.8 * high


async def test_no_session_gets_the_voice_of_another() -> None:
    alone = await spoken()
    for manner in (
        {"voice": "en-us+f3", "speed": 300, "pitch": 90},
        {"voice": "en+whisper", "speed": 90},
        {"voice": "en+klatt4", "pitch": 0},
        {"voice": "cmn"},
    ):
        await spoken(**manner)
        again = await spoken()
        assert abs(len(again) - len(alone)) < 2205
        assert pitch_of(again) == pytest.approx(pitch_of(alone), rel=0.1)


async def test_sessions_at_the_same_time_keep_their_own_manner() -> None:
    long = f"{TEXT} " * 12
    manners: list[dict[str, int | str]] = [
        {},
        {"speed": 350},
        {"speed": 100, "voice": "en-us+f3"},
        {"pitch": 99},
        {"pitch": 0, "voice": "en+m3"},
    ]

    async def say(manner: dict[str, int | str]) -> bytes:
        return (await hear(await open_speech(long, **manner))).audio  # type: ignore[arg-type]

    alone = [await say(manner) for manner in manners]
    together = await asyncio.gather(*[say(manner) for manner in manners])
    for one, other in zip(alone, together, strict=True):
        assert len(other) == pytest.approx(len(one), rel=0.02)
        assert pitch_of(other) == pytest.approx(pitch_of(one), rel=0.1)


@pytest.mark.parametrize(
    ("name", "value"), [("speed", "79"), ("speed", "451"), ("speed", "1.5"), ("pitch", "100")]
)
async def test_speed_and_pitch_have_their_ranges(name: str, value: str) -> None:
    with pytest.raises(RequestError, match=f"{name}=.*give .* to ") as refusal:
        await open_source({"text": "Hi", name: value})
    assert refusal.value.code is ErrorCode.BAD_REQUEST


async def test_a_request_says_it_all() -> None:
    request = {"text": "Hi", "voice": "en-us+f3", "speed": "200", "pitch": "70", "lang": "en"}
    source = await open_source(request)
    manner = source.manner  # type: ignore[attr-defined]
    assert (manner.voice, manner.speed, manner.pitch) == ("gmw/en-US+f3", 200, 70)
