"""The E-model, by worked values.

R to MOS: ITU-T G.107, Table B.1 (its 4.03 for R = 80 is 4.024 by the formula), and 93.2 for all
defaults, which is 4.41. The impairments are those that implementations of G.107 publish for
G.711 with concealment: Idd 0.1635, 3.0444 and 8.9167 at 150, 200 and 250 ms; Ie,eff 3.6398 at 1 %
and 15.7807 at 5 % of random loss, 17.2101 at 5 % with a burst ratio of 2.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.lab.figures.emodel import (
    ASSUMPTIONS,
    burst_ratio,
    delay_impairment,
    loss_impairment,
    one_way,
    opinion,
    rate,
)


@pytest.mark.parametrize(
    ("r", "mos"),
    [(90, 4.339), (80, 4.024), (70, 3.597), (60, 3.1), (50, 2.575), (93.2, 4.409286)],
)
def test_the_opinion_of_a_rating(r: float, mos: float) -> None:
    assert opinion(r) == pytest.approx(mos, abs=1e-6)


def test_the_scale_has_ends() -> None:
    assert opinion(0.0) == 1.0
    assert opinion(-40.0) == 1.0
    assert opinion(3.0) == 1.0  # where the polynomial would go below the scale
    assert opinion(100.0) == 4.5
    assert opinion(120.0) == 4.5


@given(st.floats(-50, 150), st.floats(0, 20))
def test_a_higher_rating_is_no_worse(r: float, more: float) -> None:
    assert 1.0 <= opinion(r) <= opinion(r + more) + 1e-12
    assert opinion(r) <= 4.5


@pytest.mark.parametrize(
    ("delay", "impairment"),
    [
        (0.0, 0.0),
        (0.100, 0.0),
        (0.150, 0.163531),
        (0.200, 3.044414),
        (0.250, 8.916710),
        (0.400, 24.070089),  # X = 2: 25 * (65^(1/6) - 3 * (793/729)^(1/6) + 2)
    ],
)
def test_the_impairment_of_delay(delay: float, impairment: float) -> None:
    assert delay_impairment(delay) == pytest.approx(impairment, abs=1e-6)


@pytest.mark.parametrize(
    ("loss", "ratio", "impairment"),
    [(0.0, 1.0, 0.0), (0.01, 1.0, 3.639847), (0.05, 1.0, 15.780731), (0.05, 2.0, 17.210145)],
)
def test_the_impairment_of_loss(loss: float, ratio: float, impairment: float) -> None:
    assert loss_impairment(loss, ratio) == pytest.approx(impairment, abs=1e-6)


def test_the_burst_ratio_is_that_to_random_loss() -> None:
    # Ten of 100 lost in two runs: 5 in the mean, over 1 / (1 - 0.1).
    assert burst_ratio((4, 6), 100) == pytest.approx(4.5)
    assert burst_ratio((), 100) == 1.0
    # Losses more even than chance would have them do not earn anything.
    assert burst_ratio((1, 1, 1), 10) == 1.0


def test_random_loss_has_a_burst_ratio_of_one() -> None:
    lost = np.random.default_rng(7).random(200_000) < 0.05
    edges = np.flatnonzero(np.diff(np.concatenate(([0], lost.astype(int), [0]))))
    lengths = tuple((edges[1::2] - edges[::2]).tolist())
    assert burst_ratio(lengths, len(lost)) == pytest.approx(1.0, abs=0.02)


def test_one_way_is_path_playout_and_frame() -> None:
    assert one_way(0.040, 0.150) == pytest.approx(0.210)
    assert one_way(None, 0.150) == pytest.approx(0.170)


def mask(pattern: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.array([each == "x" for each in pattern])


def test_a_rating_puts_both_together() -> None:
    clean = rate(mask("." * 100), 0.1)
    assert (clean.r, clean.outside) == (93.2, False)
    assert clean.mos == pytest.approx(4.409286, abs=1e-6)
    # One of 100, at 150 ms.
    both = rate(mask("x" + "." * 99), 0.150)
    assert both.r == pytest.approx(93.2 - 0.163531 - 3.639847, abs=1e-5)
    assert not both.outside


def test_nothing_heard_is_the_worst_there_is() -> None:
    silent = rate(mask("x" * 50), 0.1)
    assert (silent.r, silent.mos, silent.outside) == (0.0, 1.0, True)


@pytest.mark.parametrize(
    ("pattern", "delay", "outside"),
    [
        ("." * 100, 0.500, False),
        ("." * 100, 0.501, True),
        (("x" + "." * 4) * 20, 0.1, False),  # 20 %, each alone
        (("x" + "." * 4) * 20 + "x", 0.1, True),
        ("xxx" + "." * 97, 0.1, True),  # 3 %, ratio 2.9
        ("xx" + "." * 98, 0.1, False),  # 2 %, ratio 1.96
        ("xxx" + "." * 197, 0.1, False),  # 1.5 %, ratio 2.96
        ("x" * 9 + "." * 991, 0.1, True),  # 0.9 %, ratio 8.9
    ],
)
def test_what_the_model_was_not_made_for_is_marked(
    pattern: str, delay: float, outside: bool
) -> None:
    assert rate(mask(pattern), delay).outside is outside


def test_every_assumption_has_words() -> None:
    told = " ".join(ASSUMPTIONS)
    for word in ("G.107", "93.2", "G.113", "25.1", "BurstR", "narrow-band", "echo", "20 ms"):
        assert word in told
