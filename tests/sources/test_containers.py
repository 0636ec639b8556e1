from __future__ import annotations

import io
import os
import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tenuto.client import StreamCut, Trust, open_stream
from tenuto.errors import ErrorCode, RequestError, SourceError
from tenuto.media import AudioFormat
from tenuto.sources import MediaFolder, Wanted, open_file
from tenuto.sources.containers import ContainerData
from tenuto.sources.reading import FileReader
from tests.conftest import StartServer
from tests.sources.listening import hear
from tests.support.wavs import encode, signal, wav

soundfile = pytest.importorskip("soundfile", reason="the extra audio is not installed")

RATE = 48000
Write = Callable[..., Path]


def flac(seconds: float = 1.0, channels: int = 2, subtype: str = "PCM_16") -> bytes:
    buffer = io.BytesIO()
    values = np.clip(signal(RATE, channels, seconds), -1, 1)
    soundfile.write(buffer, values, RATE, subtype, format="FLAC")
    return buffer.getvalue()


def samples_of(content: bytes) -> bytes:
    return bytes(soundfile.read(io.BytesIO(content), dtype="int16")[0].astype("<i2").tobytes())


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: bytes, name: str = "a.flac") -> Path:
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write


async def heard_before_it_broke(path: Path) -> tuple[bytes, SourceError]:
    parts = []
    with pytest.raises(SourceError) as broken:
        async for run in (await open_file(path)).stream():
            parts.append(run)
    return b"".join(parts), broken.value


@pytest.mark.parametrize("name", ["a.flac", "a.wav", "a", "a.txt"])
async def test_content_counts_and_not_the_name(write: Write, name: str) -> None:
    content = flac()
    source = await open_file(write(content, name))
    assert (source.kind, source.pausable, source.patience) == ("file", True, 30.0)
    assert source.format == AudioFormat(RATE, 2)
    assert (await hear(source)).audio == samples_of(content)


async def test_a_file_that_breaks_in_the_middle_is_heard_so_far(write: Write) -> None:
    content = flac(3.0)
    truth = samples_of(content)
    half = len(content) // 2
    trash = random.Random(20).randbytes(600)
    for hurt in (content[:half], content[:half] + trash + content[half + 600 :]):
        heard, error = await heard_before_it_broke(write(hurt))
        assert len(truth) // 4 < len(heard) < len(truth)
        assert truth.startswith(heard)
        assert "a.flac' is broken after" in str(error)


async def test_its_listener_gets_what_there_was_and_the_reason(
    write: Write, tmp_path: Path, start_server: StartServer, ca_file: Path
) -> None:
    content = flac(3.0)
    write(content[: len(content) // 2])
    server = await start_server(media=tmp_path)
    url = f"https://localhost:{server.port}/v1/speak?file=a.flac&lead=max"
    parts = []
    with pytest.raises(StreamCut, match=r"'a.flac' is broken after") as cut:
        async with open_stream(url, trust=Trust(cafile=ca_file)) as stream:
            async for frame in stream:
                parts.append(frame.payload)
    assert cut.value.code is ErrorCode.SOURCE_FAILED
    assert len(b"".join(parts)) > 100_000
    assert samples_of(content).startswith(b"".join(parts))


async def test_the_end_of_a_resampled_file_is_heard_before_the_failure(write: Write) -> None:
    content = flac(3.0)
    path = write(content[: len(content) // 2])
    plain, _ = await heard_before_it_broke(path)
    parts = []
    with pytest.raises(SourceError, match="is broken"):
        async for run in (await open_file(path, Wanted(rate=24000))).stream():
            parts.append(run)
    assert len(b"".join(parts)) == len(plain) // 2


async def test_without_the_extra_the_refusal_names_the_format_and_the_extra(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "tenuto.sources.sndfile", raising=False)
    monkeypatch.setitem(sys.modules, "soundfile", None)
    monkeypatch.setitem(sys.modules, "soxr", None)
    for content, what in (
        (flac(), "FLAC data"),
        (b"OggS" + bytes(99), "Ogg data"),
        (b"\xff\xfb\x90\x64" + bytes(999), "MP3 data"),
        (b"FORM\0\0\0\0AIFF", "AIFF data"),
    ):
        path = write(content)
        with pytest.raises(RequestError, match=rf"{what}.*pip install 'tenuto\[audio\]'") as error:
            await open_file(path)
        assert error.value.code is ErrorCode.UNSUPPORTED_AUDIO
    with pytest.raises(RequestError, match=r"11025 Hz cannot become 12000 Hz.*tenuto\[audio\]"):
        await open_file(write(wav(rate=11025)))
    # What needs no library plays on.
    heard = await hear(await open_file(write(wav("s24", channels=2)), Wanted(channels=2)))
    assert len(heard.audio) == len(encode("s16", signal(channels=2)))


async def test_the_media_folder_converts_as_asked(write: Write, tmp_path: Path) -> None:
    write(wav("f32", 44100, 2))
    source = await MediaFolder(tmp_path).open("a.flac", Wanted(16000, 1))
    assert source.format == AudioFormat(16000)
    assert len((await hear(source)).audio) == 2 * 4800


@pytest.mark.parametrize(
    ("rate", "heard"),
    [
        (1001, 8000),
        (11025, 12000),
        (12345, 16000),
        (44056, 44100),
        (96001, 176400),
        (700001, 192000),
    ],
)
async def test_a_rate_without_whole_frames_becomes_the_usual_one_above(
    write: Write, rate: int, heard: int
) -> None:
    source = await open_file(write(wav(rate=rate)))
    assert source.format == AudioFormat(heard)
    assert len((await hear(source)).audio) == 2 * round(round(rate * 0.3) * heard / rate)


async def test_a_file_overwritten_in_place_fails_with_its_name(write: Write) -> None:
    source = await open_file(write(flac()))
    write(b"something else, in the same place" * 99)
    with pytest.raises(SourceError, match=r"a\.flac' can no longer be decoded"):
        await anext(source.stream())


async def test_an_ogg_cut_within_its_first_page_is_no_empty_stream(write: Write) -> None:
    buffer = io.BytesIO()
    soundfile.write(buffer, signal(RATE, 1, 0.3), RATE, "VORBIS", format="OGG")
    path = write(buffer.getvalue()[:-200])
    with pytest.raises(RequestError, match="Ogg data without one whole page"):
        await open_file(path)


def test_closing_does_not_wait_for_a_read_that_hangs(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)  # Opening it waits for a writer.
    data = ContainerData(RATE, 2, "int16")
    reader = FileReader(path, "'a.flac'", (0, 0), data, AudioFormat(RATE, 2))
    failures: list[SourceError] = []

    def read() -> None:
        try:
            reader.read(4000)
        except SourceError as error:
            failures.append(error)

    before = len(os.listdir("/proc/self/fd"))
    thread = threading.Thread(target=read)
    thread.start()
    while not reader._lock.locked():
        pass
    reader.close()
    assert thread.is_alive()
    with path.open("wb"):
        thread.join(5)
    assert not thread.is_alive()
    assert [str(error) for error in failures] == ["'a.flac' was replaced after it was opened"]
    assert reader.read(100) == b""
    assert len(os.listdir("/proc/self/fd")) == before


async def test_reading_costs_no_descriptor_when_it_is_over(write: Write) -> None:
    path = write(flac(2.0))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        stream = (await open_file(path)).stream()
        await anext(stream)
        await stream.aclose()
    assert len(os.listdir("/proc/self/fd")) <= before


async def test_a_disk_that_fails_is_told_by_name(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = await open_file(write(flac(2.0)))

    class Failing(io.BufferedReader):
        def readinto(self, buffer: object) -> int:
            raise OSError(5, "Input/output error")

    path = source.path

    def failing(self: Path, mode: str) -> Failing:
        return Failing(io.FileIO(path))

    monkeypatch.setattr(Path, "open", failing)
    with pytest.raises(SourceError, match=r"a\.flac' cannot be read: Input/output error"):
        await anext(source.stream())
    with pytest.raises(RequestError, match=r"a\.flac' cannot be read"):
        await open_file(path)
