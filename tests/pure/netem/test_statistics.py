"""The figures of a measurement, from made-up arrivals."""

import random

import pytest

from netem.measure.statistics import (
    Arrival,
    Interval,
    bursts_of,
    describe,
    difference,
    percentile,
    wilson,
)


def arrivals(*sequences: int, delay: float = 0.03) -> list[Arrival]:
    return [Arrival(number, number * 0.01 + delay) for number in sequences]


def sent(count: int) -> list[float]:
    return [number * 0.01 for number in range(count)]


def test_all_that_was_sent_and_came() -> None:
    found = describe(sent(4), arrivals(0, 1, 2, 3))
    assert (found.sent, found.received, found.lost, found.loss) == (4, 4, (), 0.0)
    assert (found.duplicated, found.reordered, found.corrupted) == (0, 0, 0)
    assert found.bursts.count == found.bursts.longest == 0
    assert found.delays is not None
    assert found.delays.median == pytest.approx(0.03)
    assert found.delays.jitter == pytest.approx(0.0)


def test_what_never_came_is_listed_and_has_no_delay() -> None:
    found = describe(sent(10), arrivals(0, 3, 4, 5, 6, 8, 9))
    assert found.lost == (1, 2, 7)
    assert found.loss == 0.3
    assert (found.bursts.count, found.bursts.mean, found.bursts.longest) == (2, 1.5, 2)
    assert found.bursts.lengths == ((1, 1), (2, 1))


def test_nothing_sent_and_nothing_come() -> None:
    nothing = describe([], [])
    assert (nothing.sent, nothing.loss, nothing.delays) == (0, 0.0, None)
    assert nothing.loss_interval == Interval(0.0, 1.0)
    assert describe(sent(5), []).loss == 1.0


def test_copies_strangers_and_latecomers_are_told_apart() -> None:
    came = [*arrivals(0, 2, 1, 2, 3), Arrival(99, 0.1), Arrival(4, 0.2, intact=False)]
    found = describe(sent(5), came)
    assert found.received == 5
    assert found.duplicated == 1
    assert found.reordered == 1
    assert found.corrupted == 1


def test_delays_are_those_of_each_packet_s_first_copy() -> None:
    delays = [0.010, 0.020, 0.040, 0.030]
    came = [Arrival(number, number * 0.01 + delay) for number, delay in enumerate(delays)]
    found = describe(sent(4), [*came, Arrival(0, 9.0)]).delays
    assert found is not None
    assert (found.least, found.median) == (pytest.approx(0.010), pytest.approx(0.020))
    assert (found.p95, found.p99, found.greatest) == (pytest.approx(0.040),) * 3
    # 10, 20 and 10 ms from one to the next.
    assert found.jitter == pytest.approx(0.040 / 3)


def test_percentile_is_a_value_that_was_there() -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.99) == 4.0
    assert percentile([7.0], 0.0) == 7.0


def test_bursts() -> None:
    assert bursts_of([]).mean == 0.0
    assert bursts_of([5]).lengths == ((1, 1),)
    assert bursts_of([1, 2, 3, 7, 8, 20]).lengths == ((1, 1), (2, 1), (3, 1))
    assert bursts_of([1, 2, 3, 7, 8, 20]).mean == 2.0


def test_wilson_as_published() -> None:
    # Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    for hits, trials, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        found = wilson(hits, trials)
        assert found == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))
    assert wilson(20, 20).high == 1.0
    assert wilson(0, 0) == Interval(0.0, 1.0)


def test_difference_as_published() -> None:
    # Newcombe 1998 (two groups), table II, method 10: 56/70 - 48/80, 9/10 - 3/10, 10/10 - 0/20.
    for one, two, low, high in (
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((10, 10), (0, 20), 0.6791, 1.0),
    ):
        found = difference(one, two)
        assert found == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))
    assert 0.0 in difference((0, 0), (3, 7))


def test_the_interval_covers_as_often_as_it_says() -> None:
    draw = random.Random(7)
    covered = sum(
        0.05 in wilson(sum(draw.random() < 0.05 for _ in range(400)), 400) for _ in range(1000)
    )
    assert 930 <= covered <= 970


def test_an_interval_holds_numbers_only() -> None:
    assert 0.5 in Interval(0.0, 1.0)
    assert "0.5" not in Interval(0.0, 1.0)
