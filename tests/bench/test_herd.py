"""A thousand clients after a restart or a crash, in virtual time: no stampede, nobody left out."""

from __future__ import annotations

import pytest

from bench.herd import CLIENTS, SCENARIOS, Scenario, stampede, told


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario.name))
def test_no_instant_is_crowded_and_all_are_admitted_by_the_rate(scenario: Scenario) -> None:
    for seed in range(10):
        herd = stampede(scenario, seed)
        assert herd.ratio <= 3, f"seed {seed}: {herd.attempts}"
        assert (len(herd.admitted), herd.given_up) == (CLIENTS, 0), f"seed {seed}"
        assert herd.fastest <= 300, f"seed {seed}"  # the burst, and a second of the rate


def test_after_a_restart_that_was_told_the_slots_are_the_servers() -> None:
    for seed in range(10):
        herd = stampede(SCENARIOS[0], seed)
        assert herd.fastest <= 150 * 1.1, f"seed {seed}"  # the rate, and what jitter moves


def test_ten_are_no_crowd_and_hear_nothing_of_a_crash() -> None:
    """Each is back before it has played out what it holds: no window is wider than that."""
    crash = Scenario("kill -9", back_at=0.0, hinted=False, buffered=2.0)
    assert not any(told(10))
    for seed in range(20):
        herd = stampede(crash, seed, clients=10)
        assert max(herd.admitted) <= 1.5, f"seed {seed}"


def test_each_of_a_crowd_knows_at_least_half_of_it() -> None:
    """Who came before the last doubling was told no more since."""
    crowds = told(CLIENTS)
    assert 5.0 <= min(crowds) < 5.5
    assert max(crowds) == pytest.approx(10.0)


@pytest.mark.parametrize("seed", range(20))
def test_two_hundred_come_back_spread_out(seed: int) -> None:
    """The server is back after 1 s; behind its first second no 100 ms has more than a tenth."""
    scenario = Scenario("restart", back_at=1.0, hinted=False, buffered=2.5)
    herd = stampede(scenario, seed, clients=200)
    bins = [0] * 100
    for at in herd.admitted:
        bins[int(at / 0.1)] += 1
    assert sum(bins) == 200
    assert max(bins[20:]) <= 20, f"seed {seed}: {bins}"
