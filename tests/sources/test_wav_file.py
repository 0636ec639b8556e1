from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenuto.errors import ErrorCode, RequestError, SourceError
from tenuto.media import Framer, Piece
from tenuto.sources import FileSource, MediaFolder, open_file
from tests.sources.listening import hear

RATE = 16000
Write = Callable[..., Path]


def fmt(rate: int = RATE, channels: int = 1, tag: int = 1, bits: int = 16) -> bytes:
    align = channels * bits // 8
    return chunk(b"fmt ", struct.pack("<HHIIHH", tag, channels, rate, rate * align, align, bits))


def extensible(tag: int = 1, bits: int = 16) -> bytes:
    guid = struct.pack("<H", tag) + bytes.fromhex("000000001000800000aa00389b71")
    head = struct.pack("<HHIIHH", 0xFFFE, 2, 48000, 48000 * bits // 4, bits // 4, bits)
    return chunk(b"fmt ", head + struct.pack("<HHI", 22, bits, 3) + guid)


def chunk(tag: bytes, body: bytes, size: int | None = None) -> bytes:
    return (
        tag
        + struct.pack("<I", len(body) if size is None else size)
        + body
        + b"\0" * (len(body) % 2)
    )


def wav(*chunks: bytes, riff_size: int | None = None) -> bytes:
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body) if riff_size is None else riff_size) + body


def noise(size: int, seed: int = 20) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: bytes, name: str = "a.wav") -> Path:
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write


@pytest.mark.parametrize("rate", [16000, 22050, 48000])
@pytest.mark.parametrize("channels", [1, 2])
async def test_what_is_played_is_what_is_stored(write: Write, rate: int, channels: int) -> None:
    data = noise(2 * channels * int(10.013 * rate))
    source = await open_file(write(wav(fmt(rate, channels), chunk(b"data", data))))
    assert (source.kind, source.format.rate, source.format.channels) == ("file", rate, channels)
    heard = await hear(source)
    assert hashlib.sha256(heard.audio).digest() == hashlib.sha256(data).digest()
    assert len(heard.runs) > 4


@pytest.mark.parametrize("samples", [0, 1, 2, 959, 960, 961, 1919, 1921])
async def test_the_tail_is_played(write: Write, samples: int) -> None:
    data = noise(2 * samples)
    heard = await hear(await open_file(write(wav(fmt(), chunk(b"data", data)))))
    assert heard.audio == data


DATA = noise(3001 * 2)
LIST = chunk(b"LIST", b"INFOISFT\x05\0\0\0tests\0")


@pytest.mark.parametrize(
    "content",
    [
        wav(LIST, fmt(), LIST, chunk(b"odd ", b"123"), chunk(b"data", DATA)),
        wav(fmt(), chunk(b"data", DATA), LIST) + b"trailing junk",
        wav(fmt(), chunk(b"data", DATA, size=0xFFFFFFFF), riff_size=0xFFFFFFFF),
        wav(fmt(), chunk(b"data", DATA, size=0), riff_size=0),
        wav(fmt(), chunk(b"data", DATA, size=0), riff_size=0xFFFFFFFF),
        wav(fmt(), chunk(b"data", DATA, size=0x7FFFF000), riff_size=0x7FFFF024),
        wav(fmt(), chunk(b"data", DATA, size=len(DATA) + 5000)),
    ],
    ids=["lists", "junk", "pipe-ffmpeg", "pipe-zero", "pipe-mixed", "pipe-sox", "truncated"],
)
async def test_unusual_files_are_played_as_far_as_they_go(write: Write, content: bytes) -> None:
    assert (await hear(await open_file(write(content)))).audio == DATA


async def test_a_true_zero_is_not_taken_for_an_unknown_size(write: Write) -> None:
    content = wav(fmt(), chunk(b"data", b""), chunk(b"LIST", b"INFO"))
    assert (await hear(await open_file(write(content)))).audio == b""


async def test_extensible_pcm_is_pcm(write: Write) -> None:
    source = await open_file(write(wav(extensible(), chunk(b"data", DATA[:4000]))))
    assert (source.format.rate, source.format.channels) == (48000, 2)
    assert (await hear(source)).audio == DATA[:4000]


async def test_a_stray_byte_is_handed_on_and_the_framer_drops_and_counts_it(write: Write) -> None:
    source = await open_file(write(wav(fmt(), chunk(b"data", DATA + b"\x55"))))
    framer = Framer(source.format)
    pieces: list[Piece] = []
    async for run in source.stream():
        pieces += framer.push(run)
    tail = framer.finish()
    assert tail is not None
    assert b"".join(p.payload for p in pieces) + tail.payload == DATA
    assert framer.stray_bytes == 1


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "an empty file"),
        (wav(), "a WAV file without a data chunk"),
        (wav(fmt()), "a WAV file without a data chunk"),
        (wav(fmt())[:30], "a WAV file with a short format chunk"),
        (wav(chunk(b"data", DATA)), "a WAV file without a format before its data"),
        (b"RIFF\x04\0\0\0AVI ", "a RIFF file that is not WAVE"),
        (b"RF64\xff\xff\xff\xffWAVE", "without a data chunk"),
        ("Guten Tag, größer\n".encode() * 50, "text"),
        (b"ID3\x04\0\0\0\0\0\0" + noise(500), "MP3 data"),
        (b"\xff\xfb\x90\x64" + noise(500), "MP3 data"),
        (b"\xff\xf1\x50\x80" + noise(500), "AAC data"),
        (b"fLaC" + noise(90), "FLAC data"),
        (b"OggS" + noise(90), "Ogg data"),
        (b"\0\0\0\x20ftypM4A " + noise(90), "MP4 data"),
        (noise(900), "data of no known audio format"),
        (b"\0" * 100, "data of no known audio format"),
        (wav(fmt(bits=40), chunk(b"data", DATA)), "40-bit PCM"),
        (wav(fmt(bits=0), chunk(b"data", DATA)), "0-bit PCM"),
        (wav(fmt(tag=3, bits=24), chunk(b"data", DATA)), "24-bit float"),
        (wav(fmt(tag=7, bits=16), chunk(b"data", DATA)), "mu-law, 1 channels in blocks of 2"),
        (wav(fmt(tag=0x55), chunk(b"data", DATA)), "MP3"),
        (wav(fmt(tag=0x1234), chunk(b"data", DATA)), "format 0x1234"),
        (wav(extensible(tag=2, bits=8), chunk(b"data", DATA)), "Microsoft ADPCM"),
        (wav(extensible()[:-4], chunk(b"data", DATA)), "format 0xFFFE"),
        (wav(fmt().replace(b"\x02\0\x10\0", b"\x04\0\x10\0"), chunk(b"data", DATA)), "blocks of 4"),
        (wav(fmt(rate=999), chunk(b"data", DATA)), "999 Hz"),
        (wav(fmt(channels=300), chunk(b"data", DATA)), "300 channels"),
        (wav(fmt(channels=0), chunk(b"data", DATA)), "0 channels"),
        (wav(*[chunk(b"junk", b"")] * 1000, fmt(), chunk(b"data", DATA)), "without a data chunk"),
    ],
)
async def test_other_data_is_refused_by_name(write: Write, content: bytes, found: str) -> None:
    with pytest.raises(RequestError, match=found) as refusal:
        await open_file(write(content))
    assert refusal.value.code is ErrorCode.UNSUPPORTED_AUDIO
    assert refusal.value.remedy


async def test_paths_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    paths: list[tuple[str | Path, str]] = [
        (tmp_path / "none.wav", "no file"),
        (tmp_path, "is a folder"),
        (tmp_path / "fifo", "no regular file"),
        (Path("/dev/zero"), "no regular file"),
        ("a\0b", "no file name"),
        ("a\ud800b", "no file name"),
        ("x" * 5000, "cannot be read"),
    ]
    for path, found in paths:
        with pytest.raises(RequestError, match=found) as refusal:
            await open_file(path)
        assert refusal.value.code is ErrorCode.UNKNOWN_FILE
        assert refusal.value.remedy
        assert len(str(refusal.value)) < 200


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


async def test_a_file_without_permission_is_refused(write: Write) -> None:
    path = write(wav(fmt(), chunk(b"data", DATA)))
    path.chmod(0)
    with as_nobody(), pytest.raises(RequestError, match="Permission denied") as refusal:
        await open_file(path)
    assert refusal.value.code is ErrorCode.UNKNOWN_FILE


@pytest.fixture
def folder(tmp_path: Path, write: Write) -> MediaFolder:
    root = tmp_path / "media"
    (root / "sub").mkdir(parents=True)
    good = write(wav(fmt(), chunk(b"data", DATA)), "media/sub/good.wav")
    write(good.read_bytes(), "secret.wav")
    (root / "inside.wav").symlink_to(good)
    (root / "escape.wav").symlink_to(tmp_path / "secret.wav")
    (root / "up").symlink_to(tmp_path)
    (root / "loop").symlink_to(root / "loop")
    write(b"no audio", "media/text.txt")
    return MediaFolder(root)


@pytest.mark.parametrize("name", ["sub/good.wav", "./sub/good.wav", "inside.wav"])
async def test_files_of_the_media_folder_are_played(folder: MediaFolder, name: str) -> None:
    assert (await hear(await folder.open(name))).audio == DATA


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "../secret.wav", "sub/../../secret.wav", "sub/../sub/good.wav",
        "/etc/passwd", "//etc/passwd", "..\\secret.wav", "C:\\secret.wav", "\\secret.wav",
        "escape.wav", "up/secret.wav", "loop", "sub/good.wav\0", "\0", "none.wav", "sub",
        "sub/good.wav/x", "x" * 300, "a/" * 3000, "\ud800", "~/secret.wav",
    ],
)  # fmt: skip
async def test_names_that_lead_elsewhere_are_unknown(folder: MediaFolder, name: str) -> None:
    with pytest.raises(RequestError) as refusal:
        await folder.open(name)
    assert refusal.value.code is ErrorCode.UNKNOWN_FILE
    assert str(folder.root.parent) not in str(refusal.value)
    str(refusal.value).encode()


@pytest.mark.parametrize("name", ["a:b.wav", "C:\\b.wav", "sub\\good.wav", "..\\b.wav"])
async def test_drives_and_backslashes_are_plain_names_but_on_windows(
    folder: MediaFolder, name: str
) -> None:
    shutil.copy(folder.root / "sub" / "good.wav", folder.root / name)
    elsewhere = MediaFolder(folder.root, windows=False)
    assert (await hear(await elsewhere.open(name))).audio == DATA
    on_windows = MediaFolder(folder.root, windows=True)
    if name == "sub\\good.wav":  # There it would be the file in the folder.
        return
    with pytest.raises(RequestError) as refusal:
        await on_windows.open(name)
    assert refusal.value.code is ErrorCode.UNKNOWN_FILE


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize("name", ["../secret.wav", "/etc/passwd", "//host/share", "a\0b", ".."])
async def test_no_system_lets_names_lead_out(folder: MediaFolder, windows: bool, name: str) -> None:
    with pytest.raises(RequestError) as refusal:
        await MediaFolder(folder.root, windows=windows).open(name)
    assert refusal.value.code is ErrorCode.UNKNOWN_FILE


async def test_the_folder_is_not_told_in_a_refusal_of_content(folder: MediaFolder) -> None:
    with pytest.raises(RequestError, match=r"'text.txt' is text") as refusal:
        await folder.open("text.txt")
    assert str(folder.root) not in str(refusal.value)


async def test_a_missing_folder_holds_no_files(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as refusal:
        await MediaFolder(tmp_path / "none").open("a.wav")
    assert refusal.value.code is ErrorCode.UNKNOWN_FILE


async def test_a_file_replaced_before_it_plays_is_noticed(write: Write, tmp_path: Path) -> None:
    source = await open_file(write(wav(fmt(), chunk(b"data", DATA))))
    os.replace(write(b"something else", "b.wav"), tmp_path / "a.wav")
    with pytest.raises(SourceError, match="replaced"):
        await anext(source.stream())


async def test_a_file_deleted_while_it_plays_plays_on(write: Write) -> None:
    data = noise(300_000)
    path = write(wav(fmt(), chunk(b"data", data)))
    stream = (await open_file(path)).stream()
    first = await anext(stream)
    path.unlink()
    assert first + b"".join([run async for run in stream]) == data


async def test_leaving_early_closes_the_file(write: Write) -> None:
    path = write(wav(fmt(), chunk(b"data", noise(500_000))))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        source = await open_file(path)
        stream = source.stream()
        await anext(stream)
        await stream.aclose()

        async def read(source: FileSource = source) -> None:
            async for _ in source.stream():
                pass

        task = asyncio.create_task(read())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert len(os.listdir("/proc/self/fd")) <= before
