"""When a client comes back: spread out, no sooner than asked, and not for ever."""

from __future__ import annotations

from math import inf, nan
from random import Random

import pytest

from tenuto.errors import OperatorError
from tenuto.policy import Retries, RetryPolicy

POLICY = RetryPolicy()


@pytest.mark.parametrize("attempt", [*range(12), 63, 64, 65, 5000])
def test_a_thousand_draws_fill_the_whole_window(attempt: int) -> None:
    draw = Random(attempt).random
    waits = sorted(POLICY.wait(attempt, draw()) for _ in range(1000))
    window = min(4.0, 0.1 * 2 ** min(attempt, 20))
    assert POLICY.window(attempt) == window
    assert 0 <= waits[0] <= 0.02 * window
    assert 0.98 * window <= waits[-1] <= window
    # No tenth of the window holds twice its share.
    bins = [0] * 10
    for wait in waits:
        bins[min(9, int(10 * wait / window))] += 1
    assert max(bins) < 200, f"seed {attempt}: {bins}"


def test_at_the_cap_clients_are_still_spread() -> None:
    """Jitter is drawn below the cap, and not cut off by it."""
    draw = Random(1).random
    waits = [POLICY.wait(9, draw()) for _ in range(1000)]
    assert max(waits) - min(waits) >= 0.5 * POLICY.cap
    assert sum(wait == POLICY.cap for wait in waits) == 0


@pytest.mark.parametrize("retry_after", [0.25, 1.0, 7.5])
def test_retry_after_is_a_floor_and_the_jitter_comes_on_top(retry_after: float) -> None:
    draw = Random(2).random
    for attempt in range(8):
        waits = [POLICY.wait(attempt, draw(), retry_after=retry_after) for _ in range(200)]
        assert min(waits) >= retry_after
        assert max(waits) - min(waits) >= 0.8 * POLICY.window(attempt)


def test_a_negative_retry_after_is_none() -> None:
    assert POLICY.wait(0, 0.5, retry_after=-3) == 0.05


def test_what_nobody_hears_widens_the_first_window_alone() -> None:
    assert POLICY.wait(0, 1.0, unheard=1.5) == 1.5
    assert POLICY.wait(0, 1.0, unheard=-1.0) == 0.1
    assert POLICY.wait(1, 1.0, unheard=1.5) == 0.2
    assert POLICY.wait(0, 1.0, unheard=500.0) == 30.0


def test_five_attempts_are_the_classic_policy() -> None:
    """The longest waits are 0.1 s, doubled each time, up to the cap."""
    retries = Retries(RetryPolicy(attempts=5))
    retries.interrupted(0.0)
    waits = [retries.next_wait(0.0, 1.0) for _ in range(6)]
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, None]
    assert [POLICY.window(n) for n in range(8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 4.0, 4.0]


@pytest.mark.parametrize("seed", range(20))
def test_patience_ends(seed: int) -> None:
    """The last attempt is within the minute; asked for a longer wait, nobody waits at all."""
    draw = Random(seed).random
    retries = Retries(POLICY)
    retries.interrupted(100.0)
    now, waits = 100.0, 0
    while (wait := retries.next_wait(now, draw())) is not None:
        now += wait
        waits += 1
    assert 156 - 1e-9 <= now <= 160, f"seed {seed}"
    assert retries.attempt == waits
    again = Retries(POLICY)
    again.interrupted(0.0)
    assert again.next_wait(0.0, 0.0, retry_after=61) is None
    assert again.next_wait(0.0, 0.0, retry_after=60) == 60


def test_a_stable_period_starts_anew_and_a_shorter_one_does_not() -> None:
    retries = Retries(POLICY)
    retries.interrupted(0.0)
    for _ in range(4):
        retries.next_wait(0.0, 0.0)
    retries.flowing(3.0)
    retries.interrupted(12.9)  # 9.9 s of audio
    assert retries.next_wait(12.9, 1.0) == 1.6
    retries.flowing(14.0)
    retries.flowing(20.0)  # said again: it flows since 14
    retries.interrupted(24.0)
    assert retries.next_wait(24.0, 1.0) == 0.1


def test_one_interruption_has_one_patience_however_often_it_is_told() -> None:
    retries = Retries(POLICY)
    assert retries.next_wait(0.0, 0.0) is None  # nothing is interrupted
    retries.interrupted(0.0)
    assert retries.next_wait(0.0, 0.0) == 0
    retries.interrupted(50.0)
    assert retries.next_wait(60.5, 0.0) is None
    retries.flowing(61.0)
    retries.interrupted(62.0)
    assert retries.next_wait(62.0, 0.0) == 0


@pytest.mark.parametrize(
    "wrong", [{"base": -1}, {"cap": inf}, {"patience": nan}, {"stable": -0.1}, {"attempts": 0}]
)
def test_a_policy_that_is_none(wrong: dict[str, float]) -> None:
    with pytest.raises(OperatorError, match="at least one attempt"):
        RetryPolicy(**wrong)  # type: ignore[arg-type]
