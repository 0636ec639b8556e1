import os
import subprocess
import sys
from itertools import pairwise
from math import inf, nan
from pathlib import Path

import pytest

from tenuto.errors import OperatorError
from tenuto.policy import GREYING_FOR, OFFERED_FOR, Decision, QuicShare, alt_svc, decide

CLIENTS = [f"client-{number}" for number in range(100_000)]
ODD_CLIENTS = ["😀", "x" * 10_240, "\ud800", "0", "\0", " "]
ROOT = Path(__file__).parents[2]


def offered(percent: float) -> set[str]:
    share = QuicShare(percent)
    return {client for client in CLIENTS if decide(share, client).quic}


def test_the_share_is_the_share_and_raising_it_takes_quic_from_nobody() -> None:
    percents = [0, 0.1, 1, 10, 50, 99.9, 100]
    sets = [offered(percent) for percent in percents]
    for percent, clients in zip(percents, sets, strict=True):
        # Five standard deviations of a binomial share: 0.8 points in the middle.
        allowed = 5 * (len(CLIENTS) * percent / 100 * (1 - percent / 100)) ** 0.5
        assert abs(len(clients) - len(CLIENTS) * percent / 100) <= allowed
    assert sets[0] == set()
    assert sets[-1] == set(CLIENTS)
    assert all(smaller <= larger for smaller, larger in pairwise(sets))


@pytest.mark.parametrize("client", ODD_CLIENTS)
def test_any_id_has_a_side(client: str) -> None:
    sides = [decide(QuicShare(percent), client).quic for percent in range(101)]
    assert sides == sorted(sides)
    assert sides[0] is False
    assert sides[100] is True


def test_the_missing_id_comes_last() -> None:
    assert not decide(QuicShare(99.9), "").quic
    assert not decide(QuicShare((2**32 - 1.5) / 2**32 * 100), "").quic
    assert decide(QuicShare(100), "").quic


@pytest.mark.parametrize(
    ("client", "bucket"),
    [("a", 0xF7A09411), ("client-7", 0x28E3DE24), ("😀", 0x2BB2CECF), ("\ud800", 0x8D307B53)],
)
def test_buckets_as_other_languages_must_find_them(client: str, bucket: int) -> None:
    """First four bytes of SHA-256 over `tenuto`, NUL and the id; offered below the share."""
    assert not decide(QuicShare(bucket / 2**32 * 100), client).quic
    assert decide(QuicShare((bucket + 0.5) / 2**32 * 100), client).quic


def test_the_salt_deals_anew() -> None:
    here = {client for client in CLIENTS[:1000] if decide(QuicShare(50), client).quic}
    there = {client for client in CLIENTS[:1000] if decide(QuicShare(50, "b"), client).quic}
    assert 350 < len(here ^ there) < 650


def test_the_same_in_every_process() -> None:
    code = (
        "from tenuto.policy import QuicShare, decide;"
        "print([n for n in range(1000) if decide(QuicShare(10), f'client-{n}').quic])"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        ).stdout
        for seed in ("0", "1")
    }
    here = [n for n in range(1000) if decide(QuicShare(10), f"client-{n}").quic]
    assert answers == {f"{here}\n"}


@pytest.mark.parametrize(
    ("text", "percent"),
    [
        ("off", 0),
        (" OFF\n", 0),
        ("on", 100),
        ("On", 100),
        ("0", 0),
        ("0.5", 0.5),
        ("25", 25),
        ("25%", 25),
        ("10 %", 10),
        ("100", 100),
        ("1e1", 10),
    ],
)
def test_settings_that_mean_a_share(text: str, percent: float) -> None:
    assert QuicShare.parse(text) == QuicShare(percent)


@pytest.mark.parametrize(
    "text", ["", "%", "-1", "101", "NaN", "inf", "-inf", "abc", "25%%", "10 % x", "0,5", "1e999"]
)
def test_settings_that_mean_nothing(text: str) -> None:
    with pytest.raises(OperatorError, match="^quic = ") as caught:
        QuicShare.parse(text)
    number = text in ("-1", "101", "NaN", "inf", "-inf", "1e999")
    choice = 'say "off" or' if number else 'say "off", "on" or'
    assert caught.value.remedy == f"{choice} a percentage of 0 to 100"


@pytest.mark.parametrize("percent", [-0.001, 100.001, nan, inf, -inf])
def test_a_share_is_between_0_and_100(percent: float) -> None:
    with pytest.raises(OperatorError, match=f"quic = {percent}"):
        QuicShare(percent)


def test_all_clients_unless_told_otherwise() -> None:
    assert QuicShare() == QuicShare(100.0, "tenuto")


def test_a_partial_offer_is_short_so_that_a_step_back_is_quick() -> None:
    assert decide(QuicShare(100), "a").max_age == OFFERED_FOR == 86400
    assert decide(QuicShare(99.9), "a").max_age == GREYING_FOR == 300


def test_alt_svc_offers_or_withdraws() -> None:
    assert alt_svc(Decision(True, 300), 4433) == 'h3=":4433"; ma=300'
    assert alt_svc(Decision(False, 300), 4433) == "clear"
