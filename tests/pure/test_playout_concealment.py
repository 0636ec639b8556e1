"""Sound in place of lost frames, against silence."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tenuto.media import AudioFormat
from tenuto.playout.concealment import Concealer, fade_in
from tests.support.voiced import largest_jump, signal_to_error, sine, voiced

MONO = AudioFormat()


def lose(
    samples: NDArray[np.int16], audio: AudioFormat, first: int, count: int = 1
) -> NDArray[np.int16]:
    """The sound with `count` frames lost from `first` on."""
    size = audio.samples_per_frame
    concealer = Concealer(audio)
    out = []
    for n in range(len(samples) // size):
        frame = samples[n * size : n * size + size]
        if first <= n < first + count:
            out.append(concealer.conceal(size))
            continue
        if concealer.active:
            frame = concealer.recover(frame)
        concealer.heard(frame)
        out.append(frame)
    return np.concatenate(out)


@pytest.mark.parametrize("frequency", [70, 100, 155.5, 220, 333, 440, 1000])
@pytest.mark.parametrize("rate", [8000, 16_000, 22_050, 48_000])
def test_a_sine_goes_on(frequency: float, rate: int) -> None:
    sound = sine(frequency, 0.4, rate)
    got = lose(sound, AudioFormat(rate), 8)
    size = rate // 50
    hole = slice(8 * size, 9 * size)
    # The second half of the frame fades by a fifth, which alone is 22 dB; and a period is rounded
    # to whole samples.
    assert signal_to_error(sound[hole], got[hole]) > 13
    assert largest_jump(got) <= 1.1 * largest_jump(sound) + 2


@pytest.mark.parametrize("seed", range(20))
def test_a_voice_goes_on(seed: int) -> None:
    sound = voiced(seed, 0.6)
    for first in range(5, 25, 3):
        got = lose(sound, MONO, first)
        hole = slice(first * 320, first * 320 + 320)
        around = slice(first * 320, first * 320 + 640)
        assert signal_to_error(sound[hole], got[hole]) > 3, (seed, first)
        assert largest_jump(got[around]) <= 1.1 * largest_jump(sound), (seed, first)


def test_voices_on_average_are_far_better_than_silence() -> None:
    errors = []
    for seed in range(40):
        sound = voiced(seed, 0.4)
        got = lose(sound, MONO, 10)
        errors.append(signal_to_error(sound[3200:3520], got[3200:3520]))
    assert np.mean(errors) > 11
    assert np.percentile(errors, 5) > 5


@pytest.mark.parametrize("channels", [1, 2, 6])
def test_silence_stays_silence(channels: int) -> None:
    audio = AudioFormat(16_000, channels)
    silence = np.zeros((16_000, channels), np.int16)
    assert not lose(silence, audio, 10, count=5).any()


def test_before_the_first_sound_there_is_silence() -> None:
    concealer = Concealer(MONO)
    assert not concealer.conceal(320).any()
    assert concealer.quiet


def test_channels_keep_their_own_sound() -> None:
    left, right = sine(200, 0.4), sine(400, 0.4)
    both = np.hstack([left, right // 4])
    got = lose(both, AudioFormat(16_000, 2), 10)
    for channel in (0, 1):
        hole = slice(3200, 3520)
        assert signal_to_error(both[hole, channel], got[hole, channel]) > 14


def test_it_fades_after_10_ms_and_is_silent_after_60() -> None:
    concealer = Concealer(MONO)
    concealer.heard(sine(200, 0.2))
    sound = np.concatenate([concealer.conceal(320) for _ in range(5)])[:, 0]
    # Twice a period of 5 ms in each 10 ms.
    loudest = [int(np.abs(sound[n * 160 : n * 160 + 160]).max()) for n in range(10)]
    assert loudest[0] == pytest.approx(8000, rel=0.01)
    for n in range(1, 6):
        assert loudest[n] == pytest.approx(8000 * (1.2 - 0.2 * n), abs=8000 * 0.06)
    assert loudest[6:] == [0] * 4


def test_a_loss_of_ten_frames_neither_jumps_nor_hums() -> None:
    sound = voiced(3, 0.6)
    got = lose(sound, MONO, 10, count=10)
    assert not got[10 * 320 + 960 : 20 * 320].any()
    assert largest_jump(got) <= 1.2 * largest_jump(sound)


def test_noise_is_replaced_by_as_much_noise() -> None:
    rng = np.random.default_rng(7)
    noise = np.rint(rng.normal(0, 3000, (6400, 1))).astype(np.int16)
    got = lose(noise, MONO, 10)[3200:3520].astype(float)
    assert 0.6 < got.std() / 3000 < 1.2


def test_full_scale_does_not_wrap_around() -> None:
    square = np.where(np.arange(6400) // 80 % 2, 32767, -32768).astype(np.int16)[:, np.newaxis]
    got = lose(square, MONO, 10, count=2)
    assert signal_to_error(square[3200:3520], got[3200:3520]) > 10


@pytest.mark.parametrize("rate", [50, 100, 350, 1000])
def test_rates_at_which_a_period_is_a_sample(rate: int) -> None:
    sound = voiced(1, 1.0, rate)
    got = lose(sound, AudioFormat(rate), 20, count=2)
    assert len(got) == len(sound)
    assert (got[: 20 * rate // 50] == sound[: 20 * rate // 50]).all()


def test_short_blocks_are_remembered_together() -> None:
    """Blocks of one sample each must not make the history longer or dearer."""
    concealer = Concealer(MONO)
    sound = sine(200, 0.2)
    for n in range(len(sound)):
        concealer.heard(sound[n : n + 1])
        assert len(concealer._blocks) <= 22
    assert (concealer.history(800) == sound[-800:]).all()


def test_a_bridge_leads_up_to_a_frame_that_stays_whole() -> None:
    sound = voiced(5, 0.4)
    concealer = Concealer(MONO)
    concealer.heard(sound[:3200])
    waited = concealer.conceal(320)
    bridge = concealer.bridge(sound[3200:3520])
    assert len(bridge) == 80
    assert not concealer.active
    seam = np.concatenate([sound[:3200], waited, bridge, sound[3200:3520]])
    assert largest_jump(seam) <= 1.2 * largest_jump(sound)


def test_fading() -> None:
    concealer = Concealer(MONO)
    loud = np.full((320, 1), 10_000, np.int16)
    concealer.heard(loud)
    assert not concealer.quiet
    out = concealer.fade_out()
    assert (len(out), int(out[-1, 0])) == (80, pytest.approx(0, abs=200))
    assert (np.diff(out[:, 0].astype(int)) <= 0).all()
    risen = fade_in(loud, 16_000)
    assert int(risen[0, 0]) < 300
    assert (risen[48:] == loud[48:]).all()
    still = np.full((320, 1), 30, np.int16)
    assert fade_in(still, 16_000) is still
    assert len(fade_in(loud[:0], 16_000)) == 0
