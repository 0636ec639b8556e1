"""Figures held to a profile: our link in virtual time agrees with itself, and not with others."""

from dataclasses import replace

import pytest

from netem.measure.agreement import Side, agreements
from netem.measure.expectation import burst_of, loss_of, variance_factor
from netem.measure.model import fitting_rate, linger_of, model
from netem.measure.plan import Plan, Record
from netem.measure.statistics import Arrival, Direction, describe
from netem.measure.verdict import Row, Unit, compare
from netem.profile.conditions import (
    Blackout,
    Block,
    Conditions,
    Fades,
    GilbertElliott,
    Jitter,
    Nat,
    Police,
    Profile,
    RandomLoss,
    Rate,
    Schedule,
    Way,
)

pytestmark = pytest.mark.untraced

SIZE = 128
TIMES = [number / 2_000 for number in range(6_000)]


def both(conditions: Conditions, **more: object) -> Profile:
    return replace(Profile(name="mine", up=conditions, down=conditions), **more)  # type: ignore[arg-type]


LOSS5 = both(Conditions(delay=0.03, loss=RandomLoss(rate=0.05)))
BURST = both(Conditions(delay=0.03, loss=GilbertElliott.of_mean(0.05, 3)))
JITTER = both(Conditions(delay=0.03, jitter=Jitter(spread=0.005)))
NARROW = both(Conditions(delay=0.01, bottleneck=Rate(bits_per_second=1.5e6, queue=25)))
PROFILES = {
    "clear": both(Conditions()),
    "loss5": LOSS5,
    "burst": BURST,
    "jitter": JITTER,
    "narrow": NARROW,
    "fades": both(Conditions(fades=Fades(every=1.0, length=0.05))),
    "blackout": both(Conditions(blackouts=(Blackout(start=1.0, length=0.5),))),
    "reorder": both(Conditions(delay=0.02, reorder=0.1)),
    "duplicate": both(Conditions(duplicate=0.02, loss=RandomLoss(rate=0.05))),
    "blocked": both(Conditions(delay=0.03), block=Block()),
    "first packet": both(Conditions(delay=0.03), block=Block(first_packets=1)),
    "policed": both(Conditions(), police=Police(bits_per_second=1e6, burst=3_000)),
    "nat": both(Conditions(delay=0.01), nat=Nat(rebind_every=1.0)),
    "trace": both(Conditions(bottleneck=Schedule(opportunities=(2, 4, 6, 8), queue=50))),
}


def records(profile: Profile, seed: int, times: list[float] | None = None) -> dict[Way, Record]:
    sent = TIMES if times is None else times
    return model(profile, seed, {Way.UP: sent, Way.DOWN: [at + 0.000_25 for at in sent]}, SIZE)


def directions(found: dict[Way, Record]) -> dict[Way, Direction]:
    return {way: describe(record.sent_at, record.arrivals) for way, record in found.items()}


def rows_of(profile: Profile, seen: dict[Way, Record], seed: int = 1) -> list[Row]:
    return compare(profile, directions(seen), seen, records(profile, seed), payload=100, headers=28)


def row(rows: list[Row], figure: str, way: Way = Way.UP) -> Row:
    return next(one for one in rows if one.figure == figure and one.way is way)


@pytest.mark.parametrize("name", PROFILES)
def test_what_does_the_profile_agrees(name: str) -> None:
    profile = PROFILES[name]
    # Another seed: the verdict is about what a profile does, not about who is lost.
    rows = rows_of(profile, records(profile, seed=2))
    assert [one for one in rows if one.agrees is False] == []
    assert {one.way for one in rows} == set(Way)
    assert row(rows, "loss").agrees


@pytest.mark.parametrize("loss", [0.0, 0.035, 0.07, 1.0])
def test_another_loss_does_not_agree(loss: float) -> None:
    other = both(Conditions(delay=0.03, loss=RandomLoss(rate=loss)))
    assert row(rows_of(LOSS5, records(other, 2)), "loss").agrees is False


def test_nothing_sent_is_no_agreement() -> None:
    found = row(rows_of(LOSS5, records(LOSS5, 2, [])), "loss")
    assert found.measured is None
    assert found.agrees is False


def test_lone_losses_are_no_bursts() -> None:
    rows = rows_of(BURST, records(LOSS5, 2))
    assert row(rows, "loss").agrees
    assert row(rows, "burst, mean").agrees is False


@pytest.mark.parametrize("name", ["loss5", "jitter"])
def test_a_delay_two_milliseconds_longer_does_not_agree(name: str) -> None:
    profile = PROFILES[name]
    longer = both(replace(profile.up, delay=profile.up.delay + 0.002))
    found = row(rows_of(profile, records(longer, 2)), "delay, median")
    assert found.agrees is False
    assert found.unit is Unit.MILLISECONDS
    assert found.modelled == (name == "jitter")


def test_the_delay_of_a_few_packets_is_shown_and_not_judged() -> None:
    profile = PROFILES["first packet"]
    found = row(rows_of(profile, records(profile, 2)), "delay, median")
    assert found.measured == pytest.approx(0.03)
    assert found.agrees is None


def test_damage_is_expected_in_the_payload_s_share() -> None:
    profile = both(Conditions(corrupt=0.02))
    seen = records(both(Conditions()), 2)
    damaged = {
        way: Record(
            record.sent_at,
            tuple(Arrival(one.sequence, one.at, one.sequence % 64 > 0) for one in record.arrivals),
        )
        for way, record in seen.items()
    }
    rows = compare(
        profile,
        directions(damaged),
        damaged,
        records(both(Conditions()), 1),
        payload=100,
        headers=28,
    )
    found = row(rows, "corrupted")
    assert (found.expected, found.agrees) == (pytest.approx(0.02 * 100 / 128), True)
    untouched = rows_of(profile, seen)
    assert row(untouched, "corrupted").agrees is False


def test_copies_that_nobody_asked_for_do_not_agree() -> None:
    rows = rows_of(LOSS5, records(PROFILES["duplicate"], 2))
    assert row(rows, "duplicated").agrees is False


def test_formulas() -> None:
    assert loss_of(Conditions()) == 0.0
    assert loss_of(BURST.up) == pytest.approx(0.05)
    assert loss_of(Conditions(loss=GilbertElliott(to_bad=0.0, to_good=0.0))) == 0.0
    assert burst_of(BURST.up) == pytest.approx(3.0)
    assert burst_of(LOSS5.up) == pytest.approx(1 / 0.95)
    assert burst_of(Conditions()) is None
    partly = GilbertElliott(to_bad=0.1, to_good=0.5, loss_bad=0.5)
    assert burst_of(Conditions(loss=partly)) is None
    assert variance_factor(LOSS5.up) == 1.0
    assert variance_factor(BURST.up) == pytest.approx(4.7, abs=0.05)


def test_a_measurement_waits_for_the_last_packet_and_leaves_queues_empty() -> None:
    plan = Plan(packets=1_000, rate=1_000.0)
    assert linger_of(LOSS5, plan) == pytest.approx(0.33)
    assert linger_of(JITTER, plan) == pytest.approx(0.36)
    assert linger_of(NARROW, plan) > 0.31 + 25 * 128 * 8 / 1.5e6
    assert fitting_rate(LOSS5, SIZE) == 4_000.0
    assert fitting_rate(NARROW, SIZE) == pytest.approx(1.5e6 / 8 / 128 / 2)
    # 1,500 bytes each 2 ms.
    assert fitting_rate(PROFILES["trace"], 1_500) == pytest.approx(250.0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"packets": 0}, "packets must be from 1 to 1e+06, not 0"),
        ({"rate": 30_000.0}, "packets a second must be from 1 to 20000, not 30000"),
        ({"size": 10}, "bytes a packet must be from 52 to 1472, not 10"),
    ],
)
def test_plans_have_bounds(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("+", r"\+")):
        Plan(**wrong)  # type: ignore[arg-type]


def side(profile: Profile, seed: int) -> Side:
    found = records(profile, seed)
    return Side(directions(found), found)


@pytest.mark.parametrize("name", ["loss5", "burst", "jitter", "narrow", "blocked", "first packet"])
def test_two_that_do_the_same_agree(name: str) -> None:
    profile = PROFILES[name]
    found = agreements(profile, side(profile, 3), side(profile, 4), {}, ipv6=False)
    assert [one.way for one in found] == list(Way)
    assert all(one.agrees for one in found)


def test_two_that_differ_do_not_agree() -> None:
    ours = side(LOSS5, 3)
    more = both(replace(LOSS5.up, loss=RandomLoss(rate=0.08)))
    assert not agreements(LOSS5, ours, side(more, 4), {}, ipv6=False)[0].loss_agrees
    later = both(replace(LOSS5.up, delay=0.0315))
    found = agreements(LOSS5, ours, side(later, 4), {Way.UP: 0.001}, ipv6=False)[0]
    assert found.loss_agrees
    assert not found.delay_agrees
    assert found.delay_agrees_above_floor
    nothing = side(PROFILES["blocked"], 4)
    assert not agreements(LOSS5, ours, nothing, {}, ipv6=False)[0].agrees
