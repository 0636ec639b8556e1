"""WAV files in a stream, cut anywhere: a header is never heard, a sample never lost."""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Iterable

import numpy as np
import pytest

from tenuto.errors import ErrorCode, RequestError, SourceError
from tenuto.media import AudioFormat
from tenuto.sources.wav_stream import (
    MAX_HEAD,
    MAX_TRAILER,
    RawStream,
    SampleStream,
    WavStream,
)

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
        (wav(ONE) + b"\xff\xfe garbage of some length", "which is no WAV data"),
        (wav(ONE) + b"[error] lost sync\n" + wav(TWO), r"text \(b'\[error\] '\), which is no WAV"),
        (wav(ONE) + b"TAG" + b"My song".ljust(125) + wav(TWO), "goes on with an ID3v1 tag"),
        (wav(ONE) + b"ID3\3\0\0\0\0\x0f\x76" + bytes(2038) + wav(TWO), "with MP3 data"),
        (wav(ONE) + b"\n" + wav(TWO), r"\(b'\\nRIFF"),
        (wav(ONE) + b"\n", r"text \(b'\\n'\)"),
        (wav(ONE) + bytes(200) + wav(TWO), "data of no known audio format"),
        (wav(ONE) + b"LIST of songs" + wav(TWO), "a chunk that cannot stand there"),
        (wav(ONE) + chunk(b"LIST", b"", MAX_TRAILER + 1), "a chunk that cannot stand there"),
        (wav(ONE) + chunk(b"data", TWO) + wav(TWO), "a chunk that cannot stand there"),
        (wav(ONE) + chunk(b"mine", TWO) + wav(TWO), r"\(b'mine"),
        (wav(ONE, after=chunk(b"LIST", b"INFO")) + b"and so on", r"text \(b'and so o'\)"),
        (wav(ONE) + b"RI", "a WAV header that ends after 2 bytes"),
        (wav(ONE) + b"RIFF\0\0\0\0AVI LIST" + bytes(50), "after its first file it is a RIFF file"),
        (wav(ONE) + wav(TWO)[:30], "a WAV header that ends after 30 bytes"),
    ],
)
def test_what_follows_and_is_no_wav_is_a_failure_after_what_was_heard(
    data: bytes, found: str
) -> None:
    for seed in range(5):
        stream = WavStream("it")
        runs = b""
        with pytest.raises(SourceError, match=found) as failure:
            for part in cut(data, seed):
                for _, run in stream.push(part):
                    runs += run
            list(stream.finish())
        assert runs == ONE
        assert failure.value.remedy


@pytest.mark.parametrize("seed", range(4))
def test_running_out_in_a_known_chunk_is_a_clean_end(seed: int) -> None:
    data = wav(ONE) + chunk(b"LIST", b"INFO and so on")
    for size in range(len(wav(ONE)), len(data)):
        assert heard(WavStream("it"), cut(data[:size], seed)) == [(MONO, ONE)]


def eight_bit(count: int, *, padded: bool, after: bytes = b"") -> bytes:
    """As Python's own `wave` writes it where it is not padded."""
    head = struct.pack("<HHIIHH", 1, 1, 16000, 16000, 1, 8)
    data = struct.pack("<4sI", b"data", count) + b"\xc8" * count + b"\0" * (padded and count % 2)
    body = b"WAVE" + chunk(b"fmt ", head) + data + after
    return struct.pack("<4sI", b"RIFF", len(body)) + body


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_samples_of_odd_size_may_lack_their_padding(seed: int, padded: bool) -> None:
    once = b"\0\x48" * 801
    odd = eight_bit(801, padded=padded)
    assert heard(WavStream("it"), cut(odd * 3, seed)) == [(MONO, once * 3)]
    listed = eight_bit(801, padded=padded, after=chunk(b"LIST", b"INFO"))
    assert heard(WavStream("it"), cut(listed + odd + wav(ONE), seed)) == [(MONO, once * 2 + ONE)]
    bare = struct.pack("<4sI", b"LIST", 5) + b"odd!!" + b"\0" * padded
    listed = eight_bit(801, padded=padded, after=bare)
    assert heard(WavStream("it"), cut(listed + odd, seed)) == [(MONO, once * 2)]


def test_samples_of_odd_size_may_be_followed_by_the_end_of_anything() -> None:
    once = [(MONO, b"\0\x48" * 801)]
    for padding in (b"", b"\0"):
        odd = eight_bit(801, padded=False) + padding
        listed = odd + chunk(b"LIST", b"INFO")
        for size in range(len(odd), len(listed) + 1):
            assert heard(WavStream("it"), [listed[:size]]) == once
        for behind in (b"zz", b"\n\n\n", b"zzzz", b"zzzzzz"):
            with pytest.raises(SourceError, match="no WAV data"):
                heard(WavStream("it"), [odd, behind])


LIES = [
    *(0x7FFFF000, 0x7FFFF024, 0x7FFFFFFE, 0x7FFFFFFF, 0x7FFFFFDA, 0x80000000, 0x80000024),
    *(0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFDB, 0xFFFFF000),
]


@pytest.mark.parametrize("size", LIES, ids=hex)
def test_a_length_that_a_pipe_made_up_is_none(size: int) -> None:
    stream = WavStream("it")
    list(stream.push(wav(ONE, size=size, riff=size)))
    assert stream.left is None
    zero = WavStream("it")
    list(zero.push(wav(ONE, size=0, riff=size)))
    assert zero.left is None


@pytest.mark.parametrize("size", [0x7FF00000, 0x80200000, 0xFFE00000], ids=hex)
def test_a_long_file_is_as_long_as_it_says(size: int) -> None:
    stream = WavStream("it")
    list(stream.push(wav(ONE, size=size)))
    assert stream.left == size - len(ONE)


@pytest.mark.parametrize("riff", [36, 0, 0x7FFFF024, 0xFFFFFFFF])
@pytest.mark.parametrize("size", [0, 0x7FFFF000, 0xFFFFFFFF])
@pytest.mark.parametrize("seed", range(4))
def test_a_header_in_place_of_the_first_sample_is_the_next_file(
    seed: int, size: int, riff: int
) -> None:
    empty = wav(b"", size=size, riff=riff)
    assert heard(WavStream("it"), cut(empty + empty + wav(ONE), seed)) == [(MONO, ONE)]
    data = wav(ONE) + empty + wav(TWO, STEREO) + empty
    assert heard(WavStream("it"), cut(data, seed)) == [(MONO, ONE), (STEREO, TWO)]
    # Else they are samples, however few, and whatever they begin with.
    for some in (b"\1\0", b"RIFF\0\0", b"RIFF\0\0\0\0WAVX", ONE):
        assert heard(WavStream("it"), cut(empty + some, seed)) == [(MONO, some)]


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


def sine(count: int, rate: int) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    values = 12000 * np.sin(2 * np.pi * 440 * np.arange(count) / rate)
    return values.astype("<i2")


def mono(samples: bytes, rate: int, bits: int = 16) -> bytes:
    block = bits // 8
    head = struct.pack("<HHIIHH", 1, 1, rate, rate * block, block, bits)
    body = b"WAVE" + chunk(b"fmt ", head) + chunk(b"data", samples)
    return struct.pack("<4sI", b"RIFF", len(body)) + body


def test_seams_between_files_of_one_rate_are_not_heard() -> None:
    count, files = 1103, 40
    whole = sine(count * files, 11025)
    parts = [mono(part.tobytes(), 11025) for part in np.split(whole, files)]
    # The encoding may change, and it goes on all the same.
    deep = np.split(whole, files)[7].astype("<i4") << 16
    parts[7] = mono(deep.tobytes(), 11025, 32)
    ((audio, glued),) = heard(WavStream("it"), cut(b"".join(parts), 2))
    ((_, one),) = heard(WavStream("it"), [mono(whole.tobytes(), 11025)])
    assert audio == AudioFormat(12000)
    assert len(glued) // 2 == round(count * files * 12000 / 11025)
    assert glued == one
    bends = np.abs(np.diff(np.frombuffer(glued, "<i2").astype(float)[500:-500], 2))
    assert bends.max() < 1.1 * 12000 * (2 * np.pi * 440 / 12000) ** 2


def test_where_the_format_changes_the_last_one_is_heard_to_its_end() -> None:
    ((_, one),) = heard(WavStream("it"), [mono(sine(1103, 11025).tobytes(), 11025)])
    once = mono(sine(1103, 11025).tobytes(), 11025)
    twelve = AudioFormat(12000)
    data = once + wav(TWO, STEREO) + once
    assert heard(WavStream("it"), cut(data, 3)) == [(twelve, one), (STEREO, TWO), (twelve, one)]
    # Another rate that is heard in the same format is another stream for the filter, too.
    direct = mono(ONE, 12000)
    assert heard(WavStream("it"), cut(once + direct + once, 3)) == [(twelve, one + ONE + one)]


def test_what_the_converter_holds_is_heard_before_a_failure() -> None:
    once = mono(sine(1103, 11025).tobytes(), 11025)
    ((_, one),) = heard(WavStream("it"), [once])
    stream = WavStream("it")
    runs: list[bytes] = []
    with pytest.raises(SourceError, match="text"):
        runs.extend(run for _, run in stream.push(once))
        for _, run in stream.push(b"That was that."):
            runs.append(run)
    assert b"".join(runs) == one


def test_a_later_file_that_cannot_be_converted_is_the_sessions_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = WavStream("it")
    assert heard(stream, [wav(ONE)]) == [(MONO, ONE)]
    monkeypatch.setitem(sys.modules, "soxr", None)
    with pytest.raises(SourceError, match="after its first file audio of 11025 Hz") as failure:
        list(stream.push(mono(ONE, 11025)))
    assert "tenuto[audio]" in failure.value.remedy
    first = WavStream("it")
    with pytest.raises(RequestError, match="audio of 11025 Hz"):
        list(first.push(mono(ONE, 11025)))
    assert first.format is None


def test_a_part_of_a_sample_stays_in_its_file() -> None:
    odd = wav(TWO + b"\1\2\3", STEREO)
    assert heard(WavStream("it"), cut(odd * 2, 6)) == [(STEREO, TWO * 2)]


def test_runs_are_small_however_much_the_audio_grows() -> None:
    stream = WavStream("it")
    runs = [run for _, run in stream.push(mono(bytes(60_000), 1001, 8))]
    runs += [run for _, run in stream.finish()]
    assert sum(map(len, runs)) == 2 * round(60_000 * 8000 / 1001)
    assert max(map(len, runs)) <= 32 * 1024


@pytest.mark.parametrize("padded", [True, False])
def test_a_chunk_of_odd_size_may_lack_its_padding(padded: bool) -> None:
    before = struct.pack("<4sI", b"LIST", 5) + b"odd!!" + b"\0" * padded
    file = wav(ONE, before=before)
    for seed in range(5):
        assert heard(WavStream("it"), cut(file, seed)) == [(MONO, ONE)]


def test_raw_samples_are_whole() -> None:
    assert heard(RawStream(STEREO), cut(TWO + b"\1\2\3", 4)) == [(STEREO, TWO)]
    assert RawStream(STEREO).format == STEREO
