"""Who comes too early gets a slot of its own, and the queue of slots is bounded and forgets."""

from heapq import heapify, heappop, heappush
from math import inf, nan
from random import Random

import pytest

from tenuto.errors import OperatorError
from tenuto.policy import MAX_WAIT, AttachRate, Refused
from tenuto.policy.rate import MAX_SLOTS, SLOT_KEPT


def waits(rate: AttachRate, count: int, now: float) -> list[float]:
    """Of those refused."""
    answers = [rate.admit(now) for _ in range(count)]
    return [answer.wait for answer in answers if answer is not None]


def test_a_burst_and_then_the_rate() -> None:
    rate = AttachRate(10, 5)
    assert [rate.admit(0.0) for _ in range(5)] == [None] * 5
    assert rate.admit(0.0) == Refused(0.1, first=True)
    assert rate.admit(0.1) is None
    assert rate.admit(100.0) is None
    assert rate.refused == 1


def test_each_of_the_refused_has_its_own_slot() -> None:
    assert waits(AttachRate(10, 1), 5, 7.0) == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_who_comes_back_at_its_slot_is_admitted() -> None:
    rate = AttachRate(200, 200)
    slots = waits(rate, 1000, 0.0)
    assert len(slots) == 800
    # A thousandth later, for the sums of floats.
    assert [rate.admit(slot + 0.001) for slot in slots] == [None] * 800


def test_no_more_than_the_burst_and_the_rate_are_ever_admitted() -> None:
    rate = AttachRate(50, 10)
    admitted = sum(rate.admit(step * 0.001) is None for step in range(5000))
    assert admitted == pytest.approx(10 + 5 * 50, abs=1)


def test_nobody_is_told_to_wait_longer_than_the_bound() -> None:
    rate = AttachRate(1, 1)
    told = waits(rate, 1000, 0.0)
    assert max(told) == MAX_WAIT
    assert told[:3] == [1, 2, 3]


def test_an_episode_is_told_once_and_forgotten() -> None:
    rate = AttachRate(10, 40)
    assert waits(rate, 40, 0.0) == []
    refusals = [rate.admit(0.0) for _ in range(3)]
    assert [each.first for each in refusals if each] == [True, False, False]
    for _ in range(3):
        assert rate.admit(0.35) is None
    # Its slots have passed, but less than a tenth of the burst is free.
    assert rate.admit(0.35) == Refused(pytest.approx(0.05), first=False)  # type: ignore[arg-type]
    assert waits(rate, 40, 10.0) == []
    assert rate.admit(10.0) == Refused(pytest.approx(0.1), first=True)  # type: ignore[arg-type]


def test_time_may_stand_still_and_never_runs_backwards() -> None:
    rate = AttachRate(10, 1)
    assert rate.admit(5.0) is None
    refused = rate.admit(4.0)
    assert refused is not None
    assert refused.wait > 0
    assert rate.admit(5.1) is None


@pytest.mark.parametrize(
    ("rate", "burst"), [(0, 1), (-1, 1), (nan, 1), (inf, 1), (1, 0.5), (1, nan), (1, inf)]
)
def test_nonsense_is_refused(rate: float, burst: float) -> None:
    with pytest.raises(OperatorError, match="attach"):
        AttachRate(rate, burst)


def test_a_promised_slot_is_kept_from_newcomers() -> None:
    rate = AttachRate(10, 1)
    assert rate.admit(0.0, "a") is None
    assert rate.admit(0.0, "b") == Refused(pytest.approx(0.1), first=True)  # type: ignore[arg-type]
    # A token is there again, but it is b's.
    assert rate.admit(0.15, "new") == Refused(pytest.approx(0.05), first=False)  # type: ignore[arg-type]
    assert rate.admit(0.16, "b") is None
    assert rate.admit(0.2, "new") is None
    assert rate.promised == 0


def test_who_comes_before_its_time_is_told_another_and_keeps_the_first() -> None:
    rate = AttachRate(10, 1)
    waits_of_b = [rate.admit(0.0, who) for who in ("a", "b", "b")][1:]
    assert [each.wait for each in waits_of_b if each] == pytest.approx([0.1, 0.2])
    assert rate.admit(0.1, "b") is None
    assert rate.admit(0.2, "b") is None


def test_a_slot_that_nobody_comes_for_is_anybodys_after_a_while() -> None:
    rate = AttachRate(1, 1)
    assert rate.admit(0.0, "a") is None
    assert rate.admit(0.0, "gone") == Refused(1.0, first=True)
    assert rate.admit(1.5, "b") == Refused(0.5, first=False)
    assert rate.admit(2.0, "b") is None
    assert rate.admit(2.99, "c") is not None
    assert rate.promised == 2
    assert rate.admit(1.02 + SLOT_KEPT, "new") is None
    assert rate.admit(1.02 + SLOT_KEPT, "c") is None
    assert rate.promised == 0


def test_one_address_gets_half_of_the_slots_and_all_together_the_bound() -> None:
    rate = AttachRate(10, 1)
    told = [refused.wait for _ in range(400) if (refused := rate.admit(0.0, "greedy"))]
    assert rate.promised == 150
    assert max(told) == MAX_WAIT
    assert told == sorted(told)
    other = rate.admit(0.0, "modest")
    assert other is not None
    assert other.wait == pytest.approx(15.1)
    for number in range(400):
        rate.admit(0.0, str(number))
    assert rate.promised <= 300
    fast = AttachRate(1e6, 1)
    for number in range(MAX_SLOTS + 50):
        fast.admit(0.0, str(number))
    assert fast.promised == MAX_SLOTS


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_nobody_of_a_herd_is_refused_twice_however_many_newcomers_there_are(share: float) -> None:
    draw = Random(round(share * 10))
    rate = AttachRate(200, 200)
    queue = [(draw.uniform(0, 0.1), number, 0) for number in range(1000)]
    at = 0.0
    while at < 15:
        at += draw.expovariate(share * 200)
        queue.append((at, len(queue), 0))
    heapify(queue)
    most = 0
    last = 0.0
    while queue:
        now, number, before = heappop(queue)
        refused = rate.admit(now, f"address {number}")
        if refused is not None:
            most = max(most, before + 1)
            heappush(queue, (now + refused.wait + draw.uniform(0.001, 0.3), number, before + 1))
        elif number < 1000:
            last = max(last, now)
    assert most == 1
    assert last < 5
