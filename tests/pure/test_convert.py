import math
import random
import struct
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.convert import Converter, Resampler, mixing_matrix, resampled_length
from tenuto.errors import ErrorCode, RequestError
from tenuto.media import AudioFormat

SEED = 775
CUTS = (1, 2, 3, 7, 1697, 4063, 65537)


def noise(size: int) -> bytes:
    return random.Random(SEED).randbytes(size)


def convert(converter: Converter, data: bytes, cuts: list[int]) -> bytes:
    parts, position = [], 0
    for cut in cuts:
        parts.append(converter.push(data[position : position + cut]))
        position += cut
    return b"".join([*parts, converter.push(data[position:]), converter.finish()])


def tone(rate: int, seconds: float, channels: int = 1, frequency: float = 440.0) -> bytes:
    count = round(rate * seconds)
    wave = np.rint(np.sin(2 * np.pi * frequency * np.arange(count) / rate) * 16000)
    return np.repeat(wave.astype("<i2"), channels).tobytes()


class TestMixing:
    @pytest.mark.parametrize("source", range(1, 20))
    @pytest.mark.parametrize("target", range(1, 9))
    def test_full_scale_never_clips_and_every_matrix_makes_sound(
        self, source: int, target: int
    ) -> None:
        matrix = mixing_matrix(source, target)
        assert matrix.shape == (target, source)
        assert (matrix >= 0).all()
        assert matrix.sum(axis=1).max() == pytest.approx(1)
        # Whatever the channel, it is heard, save low frequencies where the standard says so.
        heard = matrix.any(axis=0)
        silent = [3] if (target, source) in ((1, 6), (2, 6), (2, 7), (2, 8)) else []
        assert np.flatnonzero(~np.asarray(heard)).tolist() == silent

    def test_known_matrices(self) -> None:
        half, sum_ = math.sqrt(0.5), 1 + 2 * math.sqrt(0.5)
        known = {
            (1, 2): [[1], [1]],
            (1, 4): [[1], [1], [0], [0]],
            (2, 1): [[0.5, 0.5]],
            (2, 3): [[1, 0], [0, 1], [0, 0]],
            (3, 1): [[1 / 3] * 3],
            (4, 2): [[1, 0, half, 0], [0, 1, 0, half]],
            # ITU-R BS.775: left, centre and left surround; no low frequencies.
            (6, 2): [[1, 0, half, 0, half, 0], [0, 1, half, 0, 0, half]],
            (6, 1): [[half, half, 1, 0, 0.5, 0.5]],
            (9, 2): [[1 / 9] * 9] * 2,
            (4, 3): [[1, 0, 0, half], [0, 1, 0, half], [0, 0, 1, 0]],
        }
        sums = {(4, 2): 1 + half, (6, 2): sum_, (6, 1): 2 + 2 * half, (4, 3): 1 + half}
        for (source, target), expected in known.items():
            wanted = np.array(expected) / sums.get((source, target), 1)
            assert np.allclose(mixing_matrix(source, target), wanted, atol=1e-7), (source, target)

    def test_mono_and_stereo_are_exact(self) -> None:
        mono, stereo = AudioFormat(16000, 1), AudioFormat(16000, 2)
        samples = (0, 1, -1, 32767, -32768)
        up = convert(Converter(mono, stereo), struct.pack("<5h", *samples), [])
        assert struct.unpack("<10h", up) == tuple(each for each in samples for _ in range(2))
        down = convert(
            Converter(stereo, mono), struct.pack("<6h", 32767, 32767, 1, 2, -32768, 0), []
        )
        assert struct.unpack("<3h", down) == (32767, 2, -16384)  # 1.5 goes to the even one

    def test_all_channels_at_full_scale_stay_there(self) -> None:
        for channels in (2, 3, 6, 8):
            source, target = AudioFormat(8000, channels), AudioFormat(8000, 2)
            low = struct.pack(f"<{channels}h", *[-32768] * channels)
            peak = np.frombuffer(convert(Converter(source, target), low, []), "<i2")
            assert (peak <= -32767 if channels != 6 else peak < 0).all()


class TestResampler:
    @pytest.mark.parametrize("samples", [0, 1, 2, 3, 441, 997, 12345])
    @pytest.mark.parametrize(
        ("source", "target"),
        [(22050, 48000), (48000, 16000), (11025, 12000), (16000, 8000), (44100, 44056)],
    )
    def test_length_is_exact(self, samples: int, source: int, target: int) -> None:
        resampler = Resampler(source, target, 2)
        made = [resampler.push(np.zeros((samples, 2), np.float32)), resampler.finish()]
        expected = round(samples * target / source)
        assert sum(len(each) for each in made) == expected
        assert resampled_length(samples, source, target) == expected

    def test_a_tone_stays_where_and_what_it_was(self) -> None:
        made = convert(Converter(AudioFormat(22050), AudioFormat(48000)), tone(22050, 1.0), [])
        wanted = np.frombuffer(tone(48000, 1.0), "<i2").astype(float)
        error = np.abs(np.frombuffer(made, "<i2") - wanted)
        assert error[1000:-1000].max() <= 2

    def test_an_edge_of_full_scale_is_clipped_not_wrapped(self) -> None:
        edge = struct.pack("<400h", *[-32768] * 200, *[32767] * 200)
        made = np.frombuffer(
            convert(Converter(AudioFormat(8000), AudioFormat(48000)), edge, []), "<i2"
        )
        assert made[: 6 * 190].max() < 0
        assert made[6 * 210 :].min() > 0
        assert (made[6 * 190 :].max(), made.min()) == (32767, -32768)

    def test_without_the_library_the_refusal_names_both_rates(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "soxr", None)
        with pytest.raises(RequestError, match=r"22050 Hz.*16000 Hz.*tenuto\[audio\]") as refusal:
            Converter(AudioFormat(22050), AudioFormat(16000))
        assert refusal.value.code is ErrorCode.UNSUPPORTED_AUDIO
        same = Converter(AudioFormat(22050, 2), AudioFormat(22050, 1))
        assert len(same.push(bytes(400))) == 200


CASES = [
    (AudioFormat(16000, 1), AudioFormat(16000, 1)),
    (AudioFormat(16000, 2), AudioFormat(16000, 1)),
    (AudioFormat(44100, 6), AudioFormat(44100, 2)),
    (AudioFormat(22050, 1), AudioFormat(48000, 2)),
    (AudioFormat(48000, 2), AudioFormat(16000, 1)),
    (AudioFormat(48000, 3), AudioFormat(8000, 3)),
]


class TestConverter:
    @pytest.mark.parametrize(("source", "target"), CASES)
    def test_cuts_change_nothing(self, source: AudioFormat, target: AudioFormat) -> None:
        data = noise(source.bytes_per_sample * 6011)
        whole = convert(Converter(source, target), data, [])
        samples = resampled_length(6011, source.rate, target.rate)
        assert len(whole) == samples * target.bytes_per_sample
        rng = random.Random(SEED)
        cuts = [[size] * (len(data) // size) for size in CUTS]
        cuts.append([rng.randint(0, 3000) for _ in range(20)])
        for each in cuts:
            if each[:1] < [7]:
                each = each[:2000]
            made = convert(Converter(source, target), data, each)
            assert made == whole, f"cuts of {each[:1]}, seed {SEED}"

    @pytest.mark.parametrize(("source", "target"), CASES[1:])
    def test_a_stray_byte_is_dropped_and_counted(
        self, source: AudioFormat, target: AudioFormat
    ) -> None:
        data = noise(source.bytes_per_sample * 500)
        converter = Converter(source, target)
        assert convert(converter, data + b"\x55", []) == convert(
            Converter(source, target), data, []
        )
        assert converter.stray_bytes == 1

    def test_the_same_format_passes_untouched(self) -> None:
        converter = Converter(AudioFormat(16000, 2), AudioFormat(16000, 2))
        run = b"\1\2\3"
        assert converter.push(run) is run
        assert (converter.finish(), converter.stray_bytes) == (b"", 0)

    def test_positions_are_those_of_the_length(self) -> None:
        converter = Converter(AudioFormat(22050), AudioFormat(48000))
        assert [converter.position(each) for each in (0, 441, 22050)] == [0, 960, 48000]

    @given(st.integers(0, 10**9), st.integers(1, 10**6), st.integers(1, 10**6))
    def test_lengths_never_shrink_as_samples_come(self, samples: int, one: int, other: int) -> None:
        assert resampled_length(samples, one, other) <= resampled_length(samples + 1, one, other)
        assert resampled_length(samples, one, one) == samples
