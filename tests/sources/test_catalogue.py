from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.errors import ErrorCode, RequestError
from tenuto.media import AudioFormat
from tenuto.sources import PARAMETERS, MediaFolder, open_source
from tenuto.sources.counting import CountingSource
from tenuto.sources.espeak import SpeechSource
from tenuto.sources.tone import ToneSource
from tests.sources.listening import hear


async def test_what_is_given_says_which_source_is_meant(tmp_path: Path) -> None:
    speech = await open_source({"text": "hello"})
    assert isinstance(speech, SpeechSource)
    assert speech.manner.voice == "gmw/en"
    mandarin = await open_source({"text": "\u4f60\u597d", "lang": "cmn"})
    assert isinstance(mandarin, SpeechSource)
    assert mandarin.manner.voice == "sit/cmn"
    tone = await open_source({"tone": "1000.5", "seconds": "2", "rate": "48000", "channels": "2"})
    assert tone == ToneSource(1000.5, 2, 48000, 2)
    assert await open_source({"source": "tone", "frequency": "50"}) == ToneSource(50)
    with pytest.raises(RequestError) as refusal:
        await open_source({"file": "none.wav"}, media=MediaFolder(tmp_path))
    assert refusal.value.code is ErrorCode.UNKNOWN_FILE


async def test_other_parameters_are_the_callers(tmp_path: Path) -> None:
    assert await open_source({"tone": "440", "lead": "max", "listener": "x"}) == ToneSource()


async def test_counting_is_for_tests_only() -> None:
    request = {"source": "counting", "frames": "7", "run": "33", "delay": "0.5", "fail_after": "3"}
    with pytest.raises(RequestError, match="speech, file, tone"):
        await open_source(request)
    source = await open_source(request, allow_test_sources=True)
    assert isinstance(source, CountingSource)
    assert (source.frames, source.run_size, source.delay) == (7, 33, 0.5)
    assert (source.fail_after, source.block_after) == (3, None)


@pytest.mark.parametrize(
    ("request_", "found"),
    [
        ({}, "nothing says what to play"),
        ({"seconds": "5"}, "nothing says what to play"),
        ({"source": "radio"}, "source='radio' is none"),
        ({"source": "x" * 1000}, "x{40}' is none"),
        ({"text": "a", "file": "b"}, "text= and file= ask for different sources"),
        ({"source": "tone", "text": "a"}, "text= means nothing to a tone"),
        ({"text": "a", "seconds": "3"}, "seconds= means nothing to a speech"),
        ({"source": "speech"}, "text= is missing"),
        ({"source": "file"}, "file= is missing"),
        ({"tone": "440", "frequency": "440"}, "the same thing"),
        ({"tone": "abc"}, "tone='abc' cannot be used. give a number 1 to 8000"),
        ({"tone": "440", "rate": "8000", "seconds": "-1"}, "seconds='-1'"),
        ({"tone": "nan"}, "tone='nan'"),
        ({"tone": "1e3"}, "tone='1e3'"),
        ({"tone": "1_0"}, "tone='1_0'"),
        ({"tone": "\u0661\u0662"}, "tone="),
        ({"tone": "440", "rate": "16000.5"}, "rate=16000.5 is no whole number"),
        ({"tone": "440", "rate": "999999999999999"}, "8000 to 192000"),
        ({"tone": "440", "channels": "9"}, "1 to 8"),
        ({"text": "a", "rate": "11025"}, "rate=11025 cannot be used. give a number divisible by"),
        ({"text": "a", "rate": "7950"}, "rate='7950' cannot be used. give a number 8000 to 192000"),
        (
            {"file": "a", "rate": "192050"},
            "rate='192050' cannot be used. give a number 8000 to 192000",
        ),
        ({"text": "a", "rate": "1e4"}, "rate='1e4' cannot be used"),
        ({"file": "a", "rate": "\u0661" * 5}, "rate="),
        ({"file": "a", "rate": "9" * 5000}, "rate='9{40}' cannot be used"),
        ({"text": "a", "channels": "0"}, "channels='0' cannot be used. give a number 1 to 8"),
        ({"file": "a", "channels": "9"}, "channels='9' cannot be used. give a number 1 to 8"),
        ({"file": "a", "channels": ""}, "channels='' cannot be used"),
        ({"tone": "440", "level": ""}, "level=''"),
        ({"tone": "9" * 5000}, "cannot be used"),
    ],
)
async def test_bad_requests_name_the_parameter_and_its_range(
    request_: dict[str, str], found: str, tmp_path: Path
) -> None:
    media = MediaFolder(tmp_path)
    with pytest.raises(RequestError, match=found) as refusal:
        await open_source(request_, media=media)
    assert refusal.value.code is ErrorCode.BAD_REQUEST
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"text": ""}, ErrorCode.BAD_TEXT),
        ({"text": "x" * 100_000}, ErrorCode.TOO_LARGE),
        ({"text": "hi", "lang": "klingonese"}, ErrorCode.UNKNOWN_VOICE),
        ({"text": "hi", "lang": ""}, ErrorCode.UNKNOWN_VOICE),
        ({"file": "a.wav"}, ErrorCode.UNKNOWN_FILE),
        ({"tone": "440", "rate": "11025"}, ErrorCode.UNSUPPORTED_AUDIO),
    ],
)
async def test_refusals_of_the_sources_keep_their_codes(
    request_: dict[str, str], code: ErrorCode
) -> None:
    with pytest.raises(RequestError) as refusal:
        await open_source(request_)
    assert refusal.value.code is code


def test_each_kind_lists_its_parameters() -> None:
    assert set(PARAMETERS) == {"speech", "file", "tone", "stdin", "counting", "model", "clock"}
    assert all("source" in names for names in PARAMETERS.values())


async def test_speech_comes_in_the_format_that_was_asked_for() -> None:
    plain_source = await open_source({"text": "One two three."})
    plain, plain_format = await hear(plain_source), plain_source.format
    source = await open_source({"text": "One two three.", "rate": "48000", "channels": "2"})
    assert (source.kind, source.format) == ("speech", AudioFormat(48000, 2))
    heard = await hear(source)
    # espeak-ng does not say it twice in exactly the same time.
    seconds = len(plain.audio) / plain_format.bytes_per_second
    assert len(heard.audio) / source.format.bytes_per_second == pytest.approx(seconds, rel=0.05)
    assert [offset for offset, _ in heard.marks] == [offset for offset, _ in plain.marks]
    same = await open_source({"text": "One.", "rate": "22050", "channels": "1"})
    assert isinstance(same, SpeechSource)
