"""Sources that leave out their beginning: exactly what the whole would have gone on with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tenuto.client import TransportChoice, Trust, open_stream
from tenuto.errors import ErrorCode, RequestError
from tenuto.sources import MediaFolder, open_source, open_speech
from tests.conftest import StartServer
from tests.sources.listening import hear
from tests.support.fetch import DOORS, fetch_soon
from tests.support.wavs import chunk, encode, fmt, riff, signal, wav

SECONDS = 1.503
# What is spoken at a time: 240 bytes at most, the first time one sentence.
CLAUSES = (
    "The first sentence is here.",
    "The second one follows, with a comma, and goes on" + " and on" * 15 + ".",
    "And the last one ends it, with as many words as it takes" + " and then some" * 6 + ".",
)
TEXT = " ".join(CLAUSES)
STARTS = (0, len(CLAUSES[0]) + 1, len(CLAUSES[0]) + len(CLAUSES[1]) + 2)


@pytest.fixture
def media(tmp_path: Path) -> MediaFolder:
    for kind in ("s16", "s24", "f32", "alaw"):
        data = encode(kind, signal(48000, 2, SECONDS))
        (tmp_path / f"{kind}.wav").write_bytes(riff(fmt(kind, 48000, 2), chunk(b"data", data)))
    # A length that a pipe could not know.
    endless = chunk(b"data", encode("s16", signal(16000, 1, SECONDS)), size=0xFFFFFFFF)
    (tmp_path / "endless.wav").write_bytes(riff(fmt("s16", 16000, 1), endless, size=0xFFFFFFFF))
    return MediaFolder(tmp_path)


def ask(kind: str, **more: str) -> dict[str, str]:
    asked = {
        "tone": {"tone": "441.7", "seconds": str(SECONDS), "channels": "2"},
        "counting": {"source": "counting", "frames": "75", "run": "1697"},
        "model": {"source": "model", "seconds": str(SECONDS), "first_token": "0", "rtf": "0"},
    }
    return {**asked.get(kind, {"file": kind}), **more}


FILES = ("s16.wav", "s24.wav", "f32.wav", "alaw.wav", "endless.wav")


@pytest.mark.parametrize("kind", ["tone", "counting", "model", *FILES])
@pytest.mark.parametrize("skip", [0, 1, 7, 74, 75, 76, 10_000_000])
async def test_a_source_goes_on_behind_what_is_left_out(
    media: MediaFolder, kind: str, skip: int
) -> None:
    whole_source = await open_source(ask(kind), media=media, allow_test_sources=True)
    whole = (await hear(whole_source)).audio
    request = ask(kind, skip=str(skip))
    heard = await hear(await open_source(request, media=media, allow_test_sources=True))
    assert heard.audio == whole[skip * whole_source.format.frame_size :]


@pytest.mark.parametrize("skip", [1, 30])
async def test_a_resampled_file_goes_on_to_the_last_bit(media: MediaFolder, skip: int) -> None:
    pytest.importorskip("soxr", reason="the extra audio is not installed")
    request = {"file": "s24.wav", "rate": "22050", "channels": "1"}
    whole = (await hear(await open_source(request, media=media))).audio
    heard = await hear(await open_source({**request, "skip": str(skip)}, media=media))
    assert heard.audio == whole[skip * 882 :]


async def test_a_long_way_into_a_decoded_file_gives_signs_of_life(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile", reason="the extra audio is not installed")
    rng = np.random.default_rng(9)
    samples = rng.integers(-30000, 30000, 48000 * 30, dtype=np.int16)
    soundfile.write(tmp_path / "long.flac", samples, 48000, subtype="PCM_16")
    source = await open_source({"file": "long.flac", "skip": "1400"}, media=MediaFolder(tmp_path))
    runs = [run async for run in source.stream() if isinstance(run, bytes)]
    assert runs.count(b"") >= 1
    assert b"".join(runs) == samples[1400 * 960 :].astype("<i2").tobytes()


async def test_a_broken_file_fails_behind_its_last_good_sample(tmp_path: Path) -> None:
    (tmp_path / "cut.wav").write_bytes(wav()[:-1001])
    whole = (await hear(await MediaFolder(tmp_path).open("cut.wav"))).audio
    request = {"file": "cut.wav", "skip": "4"}
    heard = await hear(await open_source(request, media=MediaFolder(tmp_path)))
    assert heard.audio == whole[4 * 1920 :]


@pytest.mark.parametrize(
    ("offset", "clause"),
    [(0, 0), (26, 0), (27, 1), (28, 1), (60, 1), (STARTS[2] - 2, 1), (STARTS[2], 2),
     (len(TEXT) - 1, 2)],
)  # fmt: skip
async def test_speech_begins_with_the_clause_that_holds_a_character(
    offset: int, clause: int
) -> None:
    whole = await hear(await open_speech(TEXT))
    heard = await hear(await open_speech(TEXT, offset=offset))
    assert heard.marks[0][0] == STARTS[clause]
    words = [mark for mark, _ in whole.marks if mark >= STARTS[clause]]
    assert [mark for mark, _ in heard.marks] == words
    begins = next(position for mark, position in whole.marks if mark == words[0])
    # The engine is not the same to the sample each time.
    assert abs(len(whole.audio) - begins - len(heard.audio)) < 22050 * 2 * 0.3


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        ({"text": "Hello.", "offset": "6"}, "offset=6"),
        ({"text": "Hello.", "offset": "-1"}, "offset="),
        ({"text": "Hello.", "skip": "1"}, "skip="),
        ({"tone": "440", "skip": "1.5"}, "skip=1.5"),
        ({"tone": "440", "offset": "1"}, "offset="),
        ({"file": "s16.wav", "skip": "10000001"}, "skip="),
    ],
)
async def test_what_cannot_be_left_out_is_named(
    media: MediaFolder, request_: dict[str, str], named: str
) -> None:
    with pytest.raises(RequestError) as refused:
        await open_source(request_, media=media)
    assert refused.value.code is ErrorCode.BAD_REQUEST
    assert named in refused.value.message


@pytest.mark.parametrize("door", DOORS)
async def test_a_new_session_goes_on_with_the_numbers_of_a_lost_one(
    start_server: StartServer, ca_file: Path, door: str
) -> None:
    server = await start_server()
    url = f"https://localhost:{server.port}/v1/speak"
    transport: TransportChoice = "quic" if door == "quic" else "tcp"
    params: dict[str, str | int] = {"source": "counting", "frames": 90, "from": 65530, "skip": 40}
    async with open_stream(
        url, params=params, trust=Trust(cafile=ca_file), transport=transport, lead="max"
    ) as stream:
        frames = [frame async for frame in stream]
    assert [frame.sequence for frame in frames] == list(range(65530, 65580))
    assert [int.from_bytes(f.payload[:4], "little") for f in frames] == list(range(40, 90))
    wrong = await fetch_soon(
        door, server.port, "/v1/speak?source=counting&frames=1&from=-3", ca=ca_file
    )
    assert (wrong.status, wrong.json["code"]) == (400, "bad-request")
