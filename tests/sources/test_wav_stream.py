"""WAV files in a stream, cut anywhere: a header is never heard, a sample never lost."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable

import numpy as np
import pytest

from tenuto.errors import ErrorCode, RequestError, SourceError
from tenuto.media import AudioFormat
from tenuto.sources.wav_stream import MAX_HEAD, RawStream, SampleStream, WavStream

MONO, STEREO = AudioFormat(16000), AudioFormat(48000, 2)


def chunk(tag: bytes, body: bytes, size: int | None = None) -> bytes:
    size = len(body) if size is None else size
    return struct.pack("<4sI", tag, size) + body + b"\0" * (len(body) % 2)


def wav(
    samples: bytes,
    format: AudioFormat = MONO,
    *,
    size: int | None = None,
    before: bytes = b"",
    after: bytes = b"",
    riff: int | None = None,
) -> bytes:
    block = format.bytes_per_sample
    head = struct.pack("<HHIIHH", 1, format.channels, format.rate, format.rate * block, block, 16)
    body = b"WAVE" + chunk(b"fmt ", head) + before + chunk(b"data", samples, size) + after
    return struct.pack("<4sI", b"RIFF", len(body) if riff is None else riff) + body


def heard(stream: SampleStream, parts: Iterable[bytes]) -> list[tuple[AudioFormat, bytes]]:
    """Everything, runs of one format joined."""
    joined: list[tuple[AudioFormat, bytes]] = []
    for runs in (*map(stream.push, parts), stream.finish()):
        for format, run in runs:
            assert run
            assert len(run) % format.bytes_per_sample == 0
            if joined and joined[-1][0] == format:
                joined[-1] = (format, joined[-1][1] + run)
            else:
                joined.append((format, run))
    return joined


def cut(data: bytes, seed: int) -> Iterable[bytes]:
    chance = random.Random(seed)
    while data:
        size = chance.choice((1, 2, 3, 7, 44, 4096))
        yield data[:size]
        data = data[size:]


ONE, TWO = bytes(range(1, 251)) * 4, bytes(range(250, 0, -1)) * 8


@pytest.mark.parametrize("seed", range(8))
def test_files_glued_together_are_heard_without_their_headers(seed: int) -> None:
    extra = chunk(b"LIST", b"INFOISFT\x05\0\0\0Some\0\0")
    data = wav(ONE, before=extra, after=extra) + wav(TWO, STEREO) + wav(ONE[:-1]) + wav(ONE, MONO)
    assert heard(WavStream("it"), cut(data, seed)) == [
        (MONO, ONE),
        (STEREO, TWO),
        (MONO, ONE[:-2] + ONE),
    ]


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF])
def test_where_a_pipe_cannot_tell_the_size_samples_go_to_the_end(size: int) -> None:
    data = wav(ONE, size=size, riff=size)
    assert heard(WavStream("it"), cut(data, 1)) == [(MONO, ONE)]


def test_an_empty_file_is_followed_by_the_next() -> None:
    after = chunk(b"LIST", b"INFO")
    empty = wav(b"", after=after)
    assert heard(WavStream("it"), [empty + wav(TWO, STEREO)]) == [(STEREO, TWO)]
    assert heard(WavStream("it"), [empty]) == []
    assert heard(WavStream("it"), []) == []


@pytest.mark.parametrize("seed", range(3))
def test_a_file_cut_short_is_heard_as_far_as_it_goes(seed: int) -> None:
    data = wav(ONE)[: 44 + 501]
    assert heard(WavStream("it"), cut(data, seed)) == [(MONO, ONE[:500])]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"ID3\x04" + bytes(100), "MP3 data"),
        (b"fLaC" + bytes(100), "FLAC data"),
        (b"I am afraid there is no music today.", "text"),
        (bytes(range(128, 200)), "no known audio format"),
        (b"\1", "no known audio format"),
        (b"RIFF", "a WAV header that ends after 4 bytes"),
        (wav(ONE)[:40], "a WAV header that ends after 40 bytes"),
        (b"RIFF\0\0\0\0AVI LIST" + bytes(50), "not WAVE"),
        (wav(ONE, before=chunk(b"JUNK", b"", MAX_HEAD)), f"more than {MAX_HEAD} bytes of header"),
        (b"RIFF\0\0\0\0WAVE" + chunk(b"data", ONE), "without a format"),
    ],
)
def test_what_is_no_wav_is_named(data: bytes, found: str) -> None:
    for parts in ([data], cut(data, 3)):
        with pytest.raises(RequestError, match=found) as refusal:
            heard(WavStream("it"), parts)
        assert refusal.value.code is ErrorCode.UNSUPPORTED_AUDIO
        assert refusal.value.remedy


def test_a_header_is_held_up_to_its_bound_and_no_further() -> None:
    stream = WavStream("it")
    junk = chunk(b"JUNK", bytes(1000))
    with pytest.raises(RequestError, match="of header"):
        list(stream.push(wav(b"", before=junk * (MAX_HEAD // 1008 + 1))[:-8]))
    most = wav(ONE, before=chunk(b"JUNK", bytes(MAX_HEAD - 100)))
    assert heard(WavStream("it"), [most[:1000], most[1000:]]) == [(MONO, ONE)]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (wav(ONE) + b"\xff\xfe garbage of some length", "goes on with what is no WAV data"),
        (wav(ONE) + b"RIFF\0\0\0\0AVI LIST" + bytes(50), "after its first file it is a RIFF file"),
        (wav(ONE) + wav(TWO)[:30], "a WAV header that ends after 30 bytes"),
    ],
)
def test_what_follows_and_is_no_wav_is_a_failure_after_what_was_heard(
    data: bytes, found: str
) -> None:
    stream = WavStream("it")
    runs = b""
    with pytest.raises(SourceError, match=found):
        for part in cut(data, 5):
            for _, run in stream.push(part):
                runs += run
        list(stream.finish())
    assert runs == ONE


def stored(encoding: int, bits: int, samples: bytes, *, rate: int = 16000) -> bytes:
    block = 2 * bits // 8
    head = struct.pack("<HHIIHH", encoding, 2, rate, rate * block, block, bits)
    body = b"WAVE" + chunk(b"fmt ", head) + chunk(b"data", samples)
    return struct.pack("<4sI", b"RIFF", len(body)) + body


VALUES = np.random.default_rng(7).integers(-32768, 32767, (500, 2), np.int16)


@pytest.mark.parametrize(
    ("encoding", "bits", "values"),
    [
        (1, 8, (VALUES >> 8) + 128),
        (1, 24, VALUES),
        (1, 32, VALUES.astype("<i4") << 16),
        (3, 32, (VALUES / 32768).astype("<f4")),
        (3, 64, (VALUES / 32768).astype("<f8")),
    ],
)
def test_any_encoding_becomes_16_bits_however_it_is_cut(
    encoding: int, bits: int, values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
) -> None:
    expected = (VALUES >> 8 << 8 if bits == 8 else VALUES).astype("<i2").tobytes()
    data = values.astype(np.uint8).tobytes() if bits == 8 else values.tobytes()
    if bits == 24:
        data = b"".join(b"\x55" + value.tobytes() for value in VALUES.ravel())
    audio = AudioFormat(16000, 2)
    file = stored(encoding, bits, data)
    for seed in range(3):
        assert heard(WavStream("it"), cut(file + wav(ONE), seed)) == [
            (audio, expected),
            (MONO, ONE),
        ]


def test_a_rate_without_whole_frames_is_resampled_to_its_end() -> None:
    samples = VALUES.tobytes()
    ((audio, run),) = heard(WavStream("it"), cut(stored(1, 16, samples, rate=11025), 1))
    assert audio == AudioFormat(12000, 2)
    assert len(run) // 4 == round(500 * 12000 / 11025)
    whole = heard(WavStream("it"), [stored(1, 16, samples, rate=11025)])
    assert whole == [(audio, run)]


@pytest.mark.parametrize("padded", [True, False])
def test_a_chunk_of_odd_size_may_lack_its_padding(padded: bool) -> None:
    before = struct.pack("<4sI", b"LIST", 5) + b"odd!!" + b"\0" * padded
    file = wav(ONE, before=before)
    for seed in range(5):
        assert heard(WavStream("it"), cut(file, seed)) == [(MONO, ONE)]


def test_raw_samples_are_whole() -> None:
    assert heard(RawStream(STEREO), cut(TWO + b"\1\2\3", 4)) == [(STEREO, TWO)]
    assert RawStream(STEREO).format == STEREO
