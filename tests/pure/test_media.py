import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.errors import ErrorCode, RequestError
from tenuto.media import FRAME_DURATION, AudioFormat, Codec, Framer, Piece, SampleClock

MONO = AudioFormat(16000, 1)
STEREO = AudioFormat(48000, 2)
SMALL = AudioFormat(100, 2)  # a frame of 2 samples, 8 bytes

SEED = 20


def cut(framer: Framer, runs: list[bytes]) -> list[Piece]:
    pieces = [piece for run in runs for piece in framer.push(run)]
    tail = framer.finish()
    return pieces if tail is None else [*pieces, tail]


def check_pieces(format: AudioFormat, pcm: bytes, pieces: list[Piece]) -> None:
    whole = len(pcm) // format.bytes_per_sample * format.bytes_per_sample
    assert b"".join(piece.payload for piece in pieces) == pcm[:whole]
    assert all(len(piece.payload) == format.frame_size for piece in pieces[:-1])
    assert all(0 < len(piece.payload) <= format.frame_size for piece in pieces)
    assert all(isinstance(piece.samples, int) for piece in pieces)
    assert all(len(p.payload) == p.samples * format.bytes_per_sample for p in pieces)


class TestFormat:
    @pytest.mark.parametrize(
        ("rate", "channels", "samples", "sample_size", "frame_size", "per_second"),
        [
            (16000, 1, 320, 2, 640, 32000),
            (48000, 2, 960, 4, 3840, 192000),
            (22050, 1, 441, 2, 882, 44100),
            (50, 255, 1, 510, 510, 25500),
            (409500, 1, 8190, 2, 16380, 819000),
        ],
    )
    def test_sizes(
        self,
        rate: int,
        channels: int,
        samples: int,
        sample_size: int,
        frame_size: int,
        per_second: int,
    ) -> None:
        audio = AudioFormat(rate, channels)
        assert audio.samples_per_frame == samples
        assert audio.bytes_per_sample == sample_size
        assert audio.frame_size == frame_size
        assert audio.bytes_per_second == per_second
        assert audio.codec is Codec.PCM_S16LE

    def test_what_is_sent_when_nothing_is_declared(self) -> None:
        assert AudioFormat() == AudioFormat(16000, 1, Codec.PCM_S16LE)

    @pytest.mark.parametrize("rate", [11025, 0, -50, 1, 16001])
    def test_a_rate_whose_frames_are_not_whole_samples(self, rate: int) -> None:
        with pytest.raises(RequestError, match=f"20 ms at {rate} Hz") as caught:
            AudioFormat(rate)
        assert caught.value.code is ErrorCode.UNSUPPORTED_AUDIO
        assert caught.value.remedy == (
            "resample to a rate divisible by 50, such as 16000, 22050 or 48000"
        )

    @pytest.mark.parametrize(
        ("rate", "channels"), [(16000, 0), (16000, -1), (50, 256), (409550, 1), (48000, 9)]
    )
    def test_frames_that_fit_no_record(self, rate: int, channels: int) -> None:
        with pytest.raises(RequestError, match=f"{channels} channels at {rate} Hz") as caught:
            AudioFormat(rate, channels)
        assert caught.value.code is ErrorCode.UNSUPPORTED_AUDIO
        assert caught.value.remedy == "mix down or lower the rate"


class TestClock:
    def test_counts_samples_and_seconds_from_the_base(self) -> None:
        clock = SampleClock(MONO, base=65000)
        assert clock.timestamp(65000) == 0
        assert clock.timestamp(65051) == 51 * 320
        assert clock.offset(65050) == pytest.approx(1.0)
        assert SampleClock(MONO).timestamp(3) == 960

    @given(base=st.integers(0, 2**62), frames=st.integers(0, 2**31), part=st.integers(0, 319))
    def test_finds_the_frame_that_holds_a_sample(self, base: int, frames: int, part: int) -> None:
        clock = SampleClock(MONO, base)
        assert clock.sequence_at(clock.timestamp(base + frames) + part) == base + frames

    def test_a_frame_lasts_20_ms(self) -> None:
        assert FRAME_DURATION == 0.02


class TestFramer:
    @pytest.mark.parametrize("stray", [0, 1])
    @pytest.mark.parametrize("format", [MONO, STEREO], ids=["mono", "stereo"])
    @pytest.mark.parametrize("size", [1, 2, 3, 7, 640, 1697, 3840, 4063, 65537, None])
    def test_any_chunking_gives_the_same_bytes(
        self, format: AudioFormat, size: int | None, stray: int
    ) -> None:
        rng = random.Random(SEED)
        # Neither a whole number of frames nor, with the stray byte, of samples.
        pcm = rng.randbytes(format.frame_size * 20 + format.bytes_per_sample * 13 + stray)
        runs = []
        rest = pcm
        while rest:
            step = size or rng.randint(1, 3 * format.frame_size)
            runs.append(rest[:step])
            rest = rest[step:]
        framer = Framer(format)
        pieces = cut(framer, runs)
        check_pieces(format, pcm, pieces)
        assert len(pieces) == 21
        assert pieces[-1].samples == 13
        assert framer.stray_bytes == stray

    @given(
        pcm=st.binary(max_size=100),
        format=st.sampled_from([SMALL, AudioFormat(100, 1), AudioFormat(50, 3)]),
        data=st.data(),
    )
    def test_any_bytes_in_any_cut_with_marks(
        self, pcm: bytes, format: AudioFormat, data: st.DataObject
    ) -> None:
        cuts = sorted(data.draw(st.lists(st.integers(0, len(pcm)), max_size=12)))
        framer = Framer(format)
        pieces: list[Piece] = []
        marked = []
        for number, (start, end) in enumerate(pairwise([0, *cuts, len(pcm)])):
            if data.draw(st.booleans()):
                framer.mark(number)
                marked.append((start, number))
            pieces += framer.push(pcm[start:end])
        tail = framer.finish()
        pieces += [] if tail is None else [tail]

        check_pieces(format, pcm, pieces)
        assert framer.stray_bytes == len(pcm) % format.bytes_per_sample
        for index, piece in enumerate(pieces):
            first = index * format.frame_size
            here = range(first, first + format.frame_size)
            expected = tuple(number for start, number in marked if start in here)
            assert piece.marks == expected, f"marks of frame {index}, set at {marked}"

    @pytest.mark.parametrize("samples", [0, 1, 2, 319, 320, 321, 639, 641])
    def test_every_sample_in_is_a_sample_out(self, samples: int) -> None:
        pieces = cut(Framer(MONO), [b"\x01\x02" * samples])
        assert sum(piece.samples for piece in pieces) == samples
        assert len(pieces) == -(-samples // 320)

    def test_a_mark_with_nothing_behind_it_sounds_nowhere(self) -> None:
        framer = Framer(SMALL)
        framer.mark(3)
        assert framer.finish() is None
        assert list(framer.push(b"")) == []

    def test_stray_bytes_are_counted_once(self) -> None:
        framer = Framer(SMALL)
        assert cut(framer, [b"abc"]) == []
        assert framer.stray_bytes == 3
        assert framer.finish() is None
        assert framer.stray_bytes == 3
        assert cut(framer, [b"abcdef"]) == [Piece(b"abcd", 1)]
        assert framer.stray_bytes == 5
