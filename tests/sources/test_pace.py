from __future__ import annotations

import pytest

from tenuto.sources.pace import PACE_WINDOW, PaceCheck


def told(
    pace: float, *, seconds: float = 10.0, rate: int = 16000, step: float = 0.1
) -> list[float]:
    check, rate, step = PaceCheck(), 16000, 0.1
    times = [n * step for n in range(round(seconds / step))]
    found = [check.delivered(round(rate * step * pace), rate, now) for now in times]
    return [each for each in found if each is not None]


@pytest.mark.parametrize("pace", [0.68, 0.9, 1.0, 1.1, 1.49])
def test_what_comes_as_announced_is_no_word_worth(pace: float) -> None:
    assert told(pace) == []


@pytest.mark.parametrize("pace", [0.1, 0.5, 0.66, 1.51, 2.0, 44100 / 16000])
def test_what_comes_at_another_pace_is_told_with_its_rate(pace: float) -> None:
    measured = told(pace)
    assert measured
    assert measured[0] == pytest.approx(16000 * pace, rel=0.06)


def test_nothing_is_told_before_a_whole_window() -> None:
    assert told(5.0, seconds=PACE_WINDOW) == []


def test_what_waited_before_the_first_delivery_does_not_count() -> None:
    check = PaceCheck()
    assert check.delivered(1_000_000, 16000, 0.0) is None
    assert check.delivered(32_000, 16000, 2.0) is None


def test_a_new_rate_begins_a_new_window() -> None:
    check = PaceCheck()
    check.delivered(0, 16000, 0.0)
    check.delivered(0, 16000, 1.9)
    assert check.delivered(96_000, 48000, 2.0) is None
    assert check.delivered(96_000, 48000, 4.0) is None
    assert check.delivered(0, 48000, 6.1) == 0
