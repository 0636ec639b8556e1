"""When a client comes back: spread out, no sooner than asked, and not for ever."""

from __future__ import annotations

from math import inf, nan
from random import Random

import pytest

from tenuto.errors import OperatorError
from tenuto.policy import Retries, RetryPolicy

POLICY = RetryPolicy()


def waiting(made: int, draw: float, **more: float) -> float:
    """The wait of attempt number `made`, the interruption's first if that is 0."""
    retries = Retries(POLICY)
    retries.interrupted(0.0)
    for _ in range(made):
        retries.next_wait(0.0, 0.0)
    wait = retries.next_wait(0.0, draw, **more)  # type: ignore[arg-type]
    assert wait is not None
    return wait


@pytest.mark.parametrize("attempt", [*range(12), 63, 64, 65, 500])
def test_a_thousand_draws_fill_the_whole_window(attempt: int) -> None:
    draw = Random(attempt).random
    waits = sorted(waiting(attempt, draw()) for _ in range(1000))
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
    waits = [waiting(9, draw()) for _ in range(1000)]
    assert max(waits) - min(waits) >= 0.5 * POLICY.cap
    assert sum(wait == POLICY.cap for wait in waits) == 0


@pytest.mark.parametrize("retry_after", [0.25, 1.0, 7.5])
def test_retry_after_is_a_floor_and_the_jitter_comes_on_top(retry_after: float) -> None:
    draw = Random(2).random
    for attempt in range(8):
        waits = [waiting(attempt, draw(), retry_after=retry_after) for _ in range(200)]
        assert min(waits) >= retry_after
        assert max(waits) - min(waits) >= 0.8 * POLICY.window(attempt)


def test_a_negative_retry_after_is_none() -> None:
    assert waiting(0, 0.5, retry_after=-3) == 0.05


@pytest.mark.parametrize(
    ("made", "unheard", "longest"),
    [(0, 0.0, 1.0), (0, 0.9, 1.0), (0, 1.5, 1.5), (0, 500.0, 4.0), (1, 1.5, 2.0), (6, 0.0, 4.0)],
)
def test_who_was_cut_off_with_many_is_spread_over_what_nobody_hears(
    made: int, unheard: float, longest: float
) -> None:
    assert waiting(made, 1.0, many=True, unheard=unheard) == longest


def test_alone_nobody_waits_for_longer_than_can_be_heard() -> None:
    """At most what is unheard, where that is enough for a spread."""
    assert POLICY.window(2, first=True, unheard=1.5) == 0.4
    assert POLICY.window(10, first=True, unheard=1.5) == 1.5
    assert POLICY.window(10, first=True, unheard=0.2) == 4.0
    assert POLICY.window(10, unheard=1.5) == 4.0


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


@pytest.mark.parametrize(
    ("made", "flowed", "counted"),
    [(4, 0.0, 4), (4, 0.2, 4), (4, 0.3, 3), (4, 0.9, 1), (4, 1.0, 0), (80, 9.9, 41), (80, 10, 0)],
)
def test_audio_makes_attempts_forgotten(made: int, flowed: float, counted: int) -> None:
    """One for each quarter of a second, and all of them after ten."""
    retries = Retries(POLICY)
    retries.interrupted(0.0)
    for _ in range(made):
        retries.next_wait(0.0, 0.0)
    retries.flowing(30.0)
    retries.flowing(30.2)  # said again: it flows since 30
    retries.interrupted(30.0 + flowed)
    assert retries.attempt == counted


def test_a_bad_network_is_no_reason_to_wait_and_a_server_that_cuts_at_once_is() -> None:
    for apart, longest in ((2.0, 0.1), (0.01, 4.0)):
        retries, now = Retries(POLICY), 0.0
        for _ in range(20):
            retries.interrupted(now)
            wait = retries.next_wait(now, 1.0)
            assert wait is not None
            retries.flowing(now + wait)
            now += wait + apart
        assert wait == longest


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
    "wrong",
    [
        {"base": -1},
        {"cap": inf},
        {"patience": nan},
        {"stable": -0.1},
        {"attempts": 0},
        {"forgiving": -1},
        {"spread": inf},
    ],
)
def test_a_policy_that_is_none(wrong: dict[str, float]) -> None:
    with pytest.raises(OperatorError, match="at least one attempt"):
        RetryPolicy(**wrong)  # type: ignore[arg-type]
