"""From acknowledged bytes to frames that have arrived."""

from __future__ import annotations

import random

from tenuto.web.confirmation import MAX_MARKS, Confirmations


def test_a_frame_has_arrived_when_its_last_byte_has() -> None:
    told = Confirmations(100)
    told.wrote(700, 101)
    told.wrote(1400, 103)
    assert told.reached(699) is None
    assert told.reached(700) == 101
    assert told.reached(700) is None
    assert told.waiting
    assert told.reached(5000) == 103
    assert not told.waiting
    assert told.reached(6000) is None


def test_writes_without_frames_confirm_nothing() -> None:
    told = Confirmations(7)
    told.wrote(44, 7)  # a header
    assert told.reached(44) is None
    told.wrote(100, 8)
    told.wrote(101, 8)  # a KEEPALIVE
    assert told.reached(100) == 8
    assert told.reached(101) is None


def test_at_the_brim_less_is_known_of_the_middle_and_all_of_the_end() -> None:
    told = Confirmations(0)
    for number in range(1, 100 * MAX_MARKS + 1):
        told.wrote(10 * number, number)
        assert len(told._marks) <= MAX_MARKS
    last = 100 * MAX_MARKS
    middle = told.reached(10 * last - 1)
    assert middle is not None
    assert middle < last
    assert told.reached(10 * last) == last


def test_never_more_than_has_arrived_and_in_order() -> None:
    rng = random.Random(5)
    for _ in range(50):
        told = Confirmations(0)
        ends: list[int] = []
        total = reached = before = 0
        for _ in range(400):
            if rng.random() < 0.6:
                total += rng.randrange(1, 900)
                ends.append(total)
                told.wrote(total, len(ends))
            else:
                reached = rng.randint(reached, total)
                until = told.reached(reached)
                if until is not None:
                    assert before < until
                    assert ends[until - 1] <= reached
                    before = until
