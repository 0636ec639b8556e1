"""Which probes are sent next, and what single patterns of answers mean."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from tenuto.doctor.diagnosis.evidence import Icmp, IcmpKind, Ledger, Probe
from tenuto.doctor.diagnosis.mtu import ETHERNET, PathMtu, judge_mtu, next_mtu
from tenuto.doctor.diagnosis.negotiation import ProbeId, read_answer, version_probe
from tenuto.doctor.diagnosis.reach import Udp, judge_reach, next_reach
from tenuto.doctor.diagnosis.train import Order, Train, refused, waits_until

BASE = 1228


def fly(train: Train, answers: Callable[[Order], bool], begin: float = 0.0) -> Ledger:
    probes = [
        Probe(
            order.flow,
            order.number,
            order.size,
            begin + order.after,
            begin + order.after + 0.05 if answers(order) else None,
        )
        for order in train.orders
    ]
    return Ledger(tuple(probes))


def flown(answers: Callable[[Order], bool]) -> Ledger:
    ledger = Ledger()
    while (train := next_reach(ledger, BASE)) is not None:
        ledger = ledger.and_then(fly(train, answers, len(ledger.probes)))
    return ledger


def row(flow: int, answered: Sequence[bool]) -> Ledger:
    return Ledger(
        tuple(
            Probe(flow, number, BASE, 0.03 * number, 0.03 * number + 0.05 if heard else None)
            for number, heard in enumerate(answered)
        )
    )


def test_a_probe_is_a_long_header_of_a_reserved_version() -> None:
    probe = ProbeId(b"\1\2\3\4", 5, 600)
    data = version_probe(probe, 1200)
    assert len(data) == 1200
    assert data[0] & 0xC0 == 0xC0
    assert [byte & 0x0F for byte in data[1:5]] == [0x0A] * 4
    assert data[5:14] == b"\x08" + probe.encode()
    assert data[14:23] == b"\x08" + probe.encode()


def test_an_answer_names_its_probe() -> None:
    probe = ProbeId(b"\1\2\3\4", 5, 600)
    answer = b"\xff\0\0\0\0\x08" + probe.encode() + b"\x08" + bytes(8) + b"\0\0\0\1"
    assert read_answer(answer, probe.nonce) == probe
    assert read_answer(answer, b"else") is None
    assert read_answer(b"\x7f" + answer[1:], probe.nonce) is None
    assert read_answer(answer[:1] + b"\0\0\0\1" + answer[5:], probe.nonce) is None
    assert read_answer(answer[:5] + b"\x09" + answer[6:], probe.nonce) is None
    assert [read_answer(answer[:size], probe.nonce) for size in range(15)] == [None] * 15


def test_a_healthy_row_is_enough() -> None:
    ledger = flown(lambda order: True)
    assert {probe.flow for probe in ledger.probes} == {0}
    assert judge_reach(ledger).udp is Udp.OPEN
    assert judge_reach(ledger).rtt == pytest.approx(0.05)


def test_a_flow_that_lives_again_on_the_second_row_was_in_an_outage() -> None:
    ledger = flown(lambda order: order.flow == 1 or order.number < 20)
    assert {probe.flow for probe in ledger.probes} == {0, 1}
    reach = judge_reach(ledger)
    assert (reach.udp, reach.after) == (Udp.OPEN, 0)
    assert reach.outage > 0


def test_a_first_row_in_an_outage_is_made_up_for() -> None:
    reach = judge_reach(flown(lambda order: order.flow == 1))
    assert reach.udp is Udp.OPEN
    ledger = flown(lambda order: (order.flow == 1 and order.number == 3) or order.flow == 2)
    assert len(ledger.flow(2)) == 40
    assert judge_reach(ledger).udp is Udp.OPEN


@pytest.mark.parametrize("after", [1, 2, 5, 20, 30])
def test_a_flow_that_dies_is_counted(after: int) -> None:
    ledger = flown(lambda order: order.number < after)
    reach = judge_reach(ledger)
    assert reach.udp is (Udp.FIRST_PACKET if after == 1 else Udp.DIES)
    assert reach.after == after
    # With the gentle ones answered too, it may be a limit: but it is not taken for one.
    assert not ledger.flow(3)


def test_flows_that_die_at_different_places_do_not_die_by_number() -> None:
    ledger = flown(lambda order: order.flow < 4 and order.number < (4 if order.flow == 0 else 25))
    assert judge_reach(ledger).udp is Udp.OPEN


def test_a_flow_that_wakes_again_did_not_die() -> None:
    ledger = flown(
        lambda order: (
            order.flow < 4 and (order.number < 10 or (order.flow == 0 and order.number >= 40))
        )
    )
    assert judge_reach(ledger).udp is Udp.OPEN


def test_slow_probes_that_pass_speak_against_a_death() -> None:
    ledger = flown(lambda order: order.number == 0 or order.flow == 2)
    reach = judge_reach(ledger)
    assert reach.udp is Udp.THROTTLED
    assert len(ledger.flow(3)) == 40


def test_a_line_that_is_slow_for_tcp_too_is_not_throttled() -> None:
    ledger = flown(lambda order: order.number % 13 == 0 or order.flow == 2)
    assert judge_reach(ledger).udp is Udp.THROTTLED
    rate = judge_reach(ledger).rate
    assert rate > 0
    assert judge_reach(ledger, 1.4 * rate).udp is Udp.OPEN
    assert judge_reach(ledger, 20 * rate).udp is Udp.THROTTLED


def test_losses_at_any_rate_are_no_limit() -> None:
    sparse = flown(lambda order: order.number % 13 == 0)
    assert judge_reach(sparse).udp is Udp.OPEN
    assert judge_reach(sparse).loss > 0.8
    # Quick ones pass as well as slow ones in one row.
    ledger = flown(lambda order: order.flow in (2, 3) or order.number % 13 == 0)
    assert judge_reach(ledger).udp is Udp.OPEN


@pytest.mark.parametrize(
    ("kind", "udp"),
    [
        (IcmpKind.PORT, Udp.REJECTED),
        (IcmpKind.PROHIBITED, Udp.PROHIBITED),
        (IcmpKind.UNREACHABLE, Udp.UNREACHABLE),
        (IcmpKind.TOO_BIG, Udp.SMALL),
    ],
)
def test_silence_has_the_reason_that_icmp_gives(kind: IcmpKind, udp: Udp) -> None:
    icmp = tuple(Icmp(0.1, 0, kind, "192.0.2.7") for _ in range(3))
    ledger = Ledger(row(0, [False] * 40).probes, icmp)
    reach = judge_reach(ledger)
    assert (reach.udp, reach.answered, reach.loss) == (udp, 0, 1.0)
    assert reach.by == ("" if udp is Udp.BLOCKED else "192.0.2.7")
    assert (next_reach(ledger, BASE) is None) == (udp is not Udp.BLOCKED)


def test_after_refusals_nothing_is_sent_or_waited_for() -> None:
    silent = row(0, [False] * 5)
    icmp = [Icmp(0.1, 0, IcmpKind.PORT, "") for _ in range(3)]
    assert refused(silent.probes, icmp)
    assert not refused(silent.probes, icmp[:2])
    assert not refused(row(0, [True, False]).probes, icmp)
    assert waits_until(silent.probes, icmp) == pytest.approx(0.12)


def test_answers_are_waited_for_as_long_as_the_path_takes() -> None:
    assert waits_until(row(0, [True] * 3).probes, []) == pytest.approx(0.06)
    assert waits_until(row(0, [False] * 3).probes, []) == pytest.approx(2.56)
    assert waits_until(row(0, [True, True, False]).probes, []) == pytest.approx(0.58)
    slow = (Probe(0, 0, BASE, 0.0, 2.0), Probe(0, 1, BASE, 0.1))
    assert waits_until(slow, []) == pytest.approx(5.1)


# The largest packet


def searched(limit: int, told: int = 0, loss: float = 0.0, by: str = "192.0.2.7") -> Ledger:
    ledger = Ledger()
    while (train := next_mtu(ledger, BASE, loss)) is not None:
        flight = fly(train, lambda order: order.size <= limit)
        too_big = any(probe.size > limit for probe in flight.probes)
        icmp = (Icmp(0.1, 0, IcmpKind.TOO_BIG, by, told),) if told and too_big else ()
        ledger = ledger.and_then(Ledger(flight.probes, icmp))
    return ledger


@pytest.mark.parametrize("limit", [1228, 1229, 1280, 1400, 1492, 1499, 1500])
def test_a_black_hole_is_found_to_the_byte(limit: int) -> None:
    found = judge_mtu(searched(limit), BASE, 0.0)
    assert found == PathMtu(limit, told=False)
    assert found.limited == (limit < ETHERNET)


def test_what_icmp_tells_is_tried() -> None:
    ledger = searched(1400, told=1400)
    assert judge_mtu(ledger, BASE, 0.0) == PathMtu(1400, told=True, by="192.0.2.7")
    assert {probe.size for probe in ledger.probes} == {BASE, 1400, 1401, ETHERNET}


def test_a_limit_just_below_the_largest_packet_is_tried_too() -> None:
    assert judge_mtu(searched(1499, told=1499), BASE, 0.0) == PathMtu(1499, True, "192.0.2.7")


def test_this_machine_can_be_the_narrow_place() -> None:
    found = judge_mtu(searched(1300, told=1300, by=""), BASE, 0.0)
    assert found == PathMtu(1300, told=True, here=True)


def test_what_icmp_tells_is_not_believed_blindly() -> None:
    assert judge_mtu(searched(1300, told=1400), BASE, 0.0) == PathMtu(1300, told=False)


def test_a_search_in_an_outage_finds_nothing_and_ends() -> None:
    ledger = Ledger()
    rounds = 0
    while (train := next_mtu(ledger, BASE, 0.3)) is not None:
        ledger = ledger.and_then(fly(train, lambda order: False))
        rounds += 1
    assert rounds == 12
    assert judge_mtu(ledger, BASE, 0.5) is None
    assert judge_mtu(Ledger(), BASE, 0.0) is None


def test_where_much_is_lost_more_is_sent() -> None:
    few = next_mtu(Ledger(), BASE, 0.0)
    many = next_mtu(Ledger(), BASE, 0.5)
    most = next_mtu(Ledger(), BASE, 1.0)
    assert few is not None
    assert many is not None
    assert most is not None
    assert len(few.orders) == 12
    assert len(few.orders) < len(many.orders) < len(most.orders) < 200


def test_a_search_where_most_is_lost_is_bounded_in_bytes() -> None:
    rng = random.Random(7)
    ledger, begin = Ledger(), 0.0
    while (train := next_mtu(ledger, BASE, 0.9)) is not None:
        ledger = ledger.and_then(
            fly(train, lambda order: order.size <= 1300 and rng.random() < 0.1, begin)
        )
        begin += 10.0
    assert 600 < len(ledger.probes) < 900
    assert sum(probe.size for probe in ledger.probes) < 1.3e6
