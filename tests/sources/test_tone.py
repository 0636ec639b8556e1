from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenuto.errors import ErrorCode, RequestError
from tenuto.sources import ToneSource
from tests.sources.listening import hear


@pytest.mark.parametrize("samples", [0, 1, 2, 959, 960, 961, 1919, 1921, 160_208])
async def test_every_sample_asked_for_is_made_and_no_other(samples: int) -> None:
    heard = await hear(ToneSource(seconds=samples / 16000))
    assert len(heard.audio) == 2 * samples


async def test_the_phase_goes_on_over_a_thousand_runs() -> None:
    tone = ToneSource(frequency=441.3, seconds=101, rate=8000, level=1.0)
    heard = await hear(tone)
    assert len(heard.runs) > 1000
    wave = np.frombuffer(heard.audio, dtype="<i2").astype(np.float64)
    ideal = np.sin(2 * np.pi * 441.3 * np.arange(101 * 8000) / 8000) * 32767
    assert np.abs(wave - ideal).max() <= 1


@pytest.mark.parametrize(("rate", "channels"), [(48000, 2), (192000, 2), (8000, 8)])
async def test_all_channels_are_alike(rate: int, channels: int) -> None:
    heard = await hear(ToneSource(rate=rate, channels=channels, seconds=0.5))
    samples = np.frombuffer(heard.audio, dtype="<i2").reshape(-1, channels)
    assert len(samples) == rate // 2
    assert (samples == samples[:, :1]).all()


async def test_the_level_is_the_peak() -> None:
    heard = await hear(ToneSource(frequency=1000, seconds=1, level=0.25))
    assert np.abs(np.frombuffer(heard.audio, dtype="<i2")).max() == round(0.25 * 32767)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"frequency": 0}, "frequency cannot be 0"),
        ({"frequency": 8001}, "1 to 8000 Hz"),
        ({"frequency": float("nan")}, "frequency cannot be nan"),
        ({"seconds": -1}, "seconds cannot be -1"),
        ({"seconds": float("inf")}, "seconds cannot be inf"),
        ({"level": 1.5}, "level cannot be 1.5"),
        ({"channels": 0}, "channels cannot be 0"),
        ({"rate": 7999}, "rate cannot be 7999"),
    ],
)
def test_arguments_out_of_range_are_named(arguments: dict[str, Any], found: str) -> None:
    with pytest.raises(RequestError, match=found) as refusal:
        ToneSource(**arguments)
    assert refusal.value.code is ErrorCode.BAD_REQUEST


def test_a_rate_without_whole_frames_is_refused() -> None:
    with pytest.raises(RequestError) as refusal:
        ToneSource(rate=11025)
    assert refusal.value.code is ErrorCode.UNSUPPORTED_AUDIO
