"""How often a verdict is wrong about a right path, and that it is not blind to a wrong one."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from netem.measure.agreement import Side, agreements
from netem.measure.chance import excess_may_be_chance, hits_may_be_chance
from netem.measure.model import model
from netem.measure.plan import Plan, Record, Recorded
from netem.measure.running import Measurement
from netem.measure.statistics import Direction, describe
from netem.measure.untried import untried
from netem.measure.verdict import Row, compare
from netem.profile.conditions import (
    Blackout,
    Conditions,
    Fades,
    GilbertElliott,
    Jitter,
    Mtu,
    Nat,
    Profile,
    RandomLoss,
    Rate,
    Way,
)

pytestmark = pytest.mark.untraced

SIZE = 128
RATE = 2_000.0


def both(conditions: Conditions, name: str = "mine") -> Profile:
    return Profile(name=name, up=conditions, down=conditions)


def records(profile: Profile, seed: int, packets: int, rate: float = RATE) -> dict[Way, Record]:
    up = [number / rate for number in range(packets)]
    return model(profile, seed, {Way.UP: up, Way.DOWN: [at + 0.000_25 for at in up]}, SIZE)


def directions(found: dict[Way, Record]) -> dict[Way, Direction]:
    return {way: describe(record.sent_at, record.arrivals) for way, record in found.items()}


def wrong(profile: Profile, real: Profile, packets: int, rate: float = RATE) -> set[str]:
    """The figures that do not agree when a path does what `real` says."""
    seen = records(real, 2, packets, rate)
    rows = compare(
        profile,
        directions(seen),
        seen,
        records(profile, 1, packets, rate),
        payload=100,
        headers=28,
    )
    return {row.figure for row in rows if row.agrees is False}


@pytest.mark.parametrize(
    ("conditions", "packets", "runs"),
    [
        (Conditions(loss=RandomLoss(rate=0.01)), 100, 1_000),
        (Conditions(loss=RandomLoss(rate=0.05)), 100, 1_000),
        (Conditions(loss=GilbertElliott.of_mean(0.05, 3)), 100, 1_000),
        (Conditions(duplicate=0.01), 100, 1_000),
        (Conditions(delay=0.03, jitter=Jitter(spread=0.01)), 1_000, 60),
    ],
)
def test_few_packets_raise_no_more_false_alarms_than_stated(
    conditions: Conditions, packets: int, runs: int
) -> None:
    profile = both(conditions)
    expected = records(profile, 0, packets)
    alarms = 0
    for seed in range(1, runs + 1):
        seen = records(profile, seed, packets)
        rows = compare(profile, directions(seen), seen, expected, payload=100, headers=28)
        alarms += sum(row.agrees is False for row in rows)
    # Four figures at one in a thousand, and room for the draw of these runs.
    assert alarms <= 1 + runs * 0.008, f"{alarms} in {runs}, seeds from 1"


def test_a_count_is_chance_where_its_tails_say_so() -> None:
    # Binomial, n = 100, p = 1 %: 5 and more come in 3.4 of 1,000 runs, 7 and more in 0.07.
    assert not hits_may_be_chance(5, 100, 0.01, sure=0.99)
    assert hits_may_be_chance(5, 100, 0.01, sure=0.999)
    assert not hits_may_be_chance(7, 100, 0.01, sure=0.999)
    assert not hits_may_be_chance(1, 100, 0.0, sure=0.999)
    assert not hits_may_be_chance(99, 100, 1.0, sure=0.999)
    assert hits_may_be_chance(100, 100, 1.0, sure=0.999)
    # In spells of three, twice as many are no wonder.
    assert hits_may_be_chance(12, 100, 0.03, sure=0.999, kept=2 / 3)
    assert not hits_may_be_chance(12, 100, 0.03, sure=0.999)
    # Large numbers are for the intervals.
    assert not hits_may_be_chance(1_000, 10_000, 0.1, sure=0.999)


def test_the_length_of_spells_is_chance_where_its_tails_say_so() -> None:
    draw = random.Random(5)
    for spells in (1, 5, 40):
        alarms = 0
        for _ in range(2_000):
            lengths = 0
            for _ in range(spells):
                lengths += 1
                while draw.random() < 2 / 3:
                    lengths += 1
            alarms += not excess_may_be_chance(lengths, spells, 3.0, sure=0.999)
        assert alarms <= 8, f"{spells} spells, seed 5"
    assert not excess_may_be_chance(40, 40, 3.0, sure=0.999)
    assert not excess_may_be_chance(0, 0, 3.0, sure=0.999)


LOSS5 = Conditions(delay=0.03, loss=RandomLoss(rate=0.05))
BURSTS = replace(LOSS5, loss=GilbertElliott.of_mean(0.05, 3))
JITTER = Conditions(delay=0.03, jitter=Jitter(spread=0.01, reordering=True))
NARROW = Conditions(delay=0.01, bottleneck=Rate(bits_per_second=1e6, queue=25))
UNLIKE: dict[str, tuple[Conditions, Conditions, str]] = {
    "6 % for 5": (LOSS5, replace(LOSS5, loss=RandomLoss(rate=0.065)), "loss"),
    "bursts of 2 for 3": (
        BURSTS,
        replace(BURSTS, loss=GilbertElliott.of_mean(0.05, 2)),
        "burst, mean",
    ),
    "later": (LOSS5, replace(LOSS5, delay=0.032), "delay, median"),
    "copies": (LOSS5, replace(LOSS5, duplicate=0.005), "duplicated"),
    "overtaking": (LOSS5, replace(LOSS5, reorder=0.005), "reordered"),
    "no overtaking": (replace(LOSS5, reorder=0.02), LOSS5, "reordered"),
    "wider jitter": (
        JITTER,
        replace(JITTER, jitter=Jitter(spread=0.015, reordering=True)),
        "delay, 95 %",
    ),
    "queue of 50 for 25": (
        NARROW,
        replace(NARROW, bottleneck=Rate(bits_per_second=1e6, queue=50)),
        "delay, median",
    ),
    "a fifth faster": (
        NARROW,
        replace(NARROW, bottleneck=Rate(bits_per_second=1.2e6, queue=25)),
        "loss",
    ),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_each_kind_of_wrong_path_is_seen(name: str) -> None:
    right, other, figure = UNLIKE[name]
    assert wrong(both(right), both(right), 6_000) == set()
    assert figure in wrong(both(right), both(other), 6_000)


@pytest.mark.parametrize("name", ["bursts of 2 for 3", "copies", "overtaking", "no overtaking"])
def test_two_drivers_that_differ_in_that_do_not_agree(name: str) -> None:
    right, other, _ = UNLIKE[name]

    def side(conditions: Conditions, seed: int) -> Side:
        found = records(both(conditions), seed, 16_000)
        return Side(directions(found), found)

    profile = both(right)
    alike = agreements(profile, side(right, 3), side(right, 4), {}, ipv6=False)
    assert all(one.agrees for one in alike)
    apart = agreements(profile, side(right, 3), side(other, 4), {}, ipv6=False)
    assert not any(one.agrees for one in apart)
    assert {one.apart for one in apart} <= {("bursts",), ("copies",), ("order",)}


def test_copies_behind_a_bottleneck_and_damage_beside_loss_are_as_expected() -> None:
    assert (
        wrong(
            both(replace(NARROW, duplicate=0.02)),
            both(replace(NARROW, duplicate=0.02)),
            5_000,
            500.0,
        )
        == set()
    )
    lossy = both(Conditions(loss=RandomLoss(rate=0.5), corrupt=0.2))
    seen = records(lossy, 2, 6_000)
    for way, record in seen.items():
        marked = (
            one._replace(intact=number % 64 >= 10) for number, one in enumerate(record.arrivals)
        )
        seen[way] = Record(record.sent_at, tuple(marked))
    rows = compare(lossy, directions(seen), seen, records(lossy, 1, 6_000), payload=100, headers=28)
    damage = [row for row in rows if row.figure == "corrupted"]
    assert [row.agrees for row in damage] == [True, True]
    assert damage[0].expected == pytest.approx(0.5 * 0.2 * 100 / 128)


def measurement(profile: Profile, packets: int, rate: float, size: int = 100) -> Measurement:
    found = records(profile, 1, packets, rate)
    recorded = Recorded(records=found, late=0, overflowed=0, clock_step=0.0)
    return Measurement(Plan(packets=packets, rate=rate, size=size), recorded, directions(found))


@pytest.mark.parametrize(
    ("change", "rate", "words"),
    [
        (lambda: both(NARROW), 400.0, "up: the rate and its queue of 25 (--rate 1172)"),
        (
            lambda: both(Conditions(bottleneck=Rate(bits_per_second=30e6, queue=25))),
            400.0,
            "up: the rate and its queue of 25 (--size 1452 --rate 3041)",
        ),
        (
            lambda: both(Conditions(bottleneck=Rate(bits_per_second=1e9, queue=25))),
            400.0,
            "up: the rate and its queue of 25 (more than can be sent from here)",
        ),
        (
            lambda: both(Conditions(fades=Fades(every=100.0, length=0.01))),
            400.0,
            "up: a fade, for none came (--packets 120000)",
        ),
        (lambda: both(Conditions(mtu=Mtu(size=1280))), 400.0, "up: the mtu (--size 1253)"),
        (
            lambda: both(Conditions(blackouts=(Blackout(start=5.0, length=1.0),))),
            100.0,
            "up: a blackout at 5 s (--packets 600)",
        ),
        (lambda: replace(both(LOSS5), nat=Nat(idle=30.0)), 400.0, "the NAT's idle time of 30 s"),
        (lambda: replace(both(LOSS5), nat=Nat(rebind_every=5.0)), 400.0, "the ports of the NAT"),
    ],
)
def test_what_was_not_tried_is_named_with_what_would_try_it(
    change: Callable[[], Profile], rate: float, words: str
) -> None:
    profile = change()
    assert any(words in one for one in untried(profile, measurement(profile, 100, rate)))


def test_what_was_tried_is_not_named() -> None:
    assert list(untried(both(NARROW), measurement(both(NARROW), 500, 2_000.0))) == []
    assert list(untried(both(LOSS5), measurement(both(LOSS5), 100, 400.0))) == []


def rows_of_a_server_that_hears_nothing(profile: Profile) -> list[Row]:
    seen = {
        Way.UP: Record(tuple(number / RATE for number in range(300)), ()),
        Way.DOWN: Record((), ()),
    }
    sent_at = {way: record.sent_at for way, record in seen.items()}
    expected = model(profile, 1, sent_at, SIZE)
    return compare(profile, directions(seen), seen, expected, payload=100, headers=28)


def test_whom_nothing_reaches_has_nobody_to_answer() -> None:
    up, *_, down = rows_of_a_server_that_hears_nothing(
        replace(both(Conditions()), up=Conditions(blackouts=(Blackout(start=0.0, length=9.0),)))
    )
    assert (up.agrees, down.agrees) == (True, None)
    up, *_, down = rows_of_a_server_that_hears_nothing(both(LOSS5))
    assert (up.agrees, down.agrees) == (False, False)
