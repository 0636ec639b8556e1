"""A thousand clients after a restart, in virtual time: no stampede, and nobody left out."""

from __future__ import annotations

import pytest

from bench.herd import CLIENTS, SCENARIOS, Scenario, stampede


@pytest.mark.parametrize("seed", range(10))
def test_after_a_restart_that_was_told_no_instant_is_crowded(seed: int) -> None:
    herd = stampede(SCENARIOS[0], seed)
    assert herd.ratio <= 3, f"seed {seed}: {herd.attempts}"
    assert len(herd.admitted) == CLIENTS
    assert herd.fastest <= 150 * 1.1, f"seed {seed}"  # the rate, and what jitter moves


@pytest.mark.parametrize("scenario", SCENARIOS[1:], ids=lambda scenario: str(scenario.name))
def test_after_a_crash_all_come_back_and_are_admitted_by_the_rate(scenario: Scenario) -> None:
    for seed in range(3):
        herd = stampede(scenario, seed)
        assert (len(herd.admitted), herd.given_up) == (CLIENTS, 0), f"seed {seed}"
        assert herd.fastest <= 400, f"seed {seed}"  # the burst, and a second of the rate
        # As good as it gets without knowing how many others there are: docs/decisions, 22.
        assert max(herd.attempts) <= 200, f"seed {seed}"
        assert herd.ratio <= 6.5, f"seed {seed}"


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
