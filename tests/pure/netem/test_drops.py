"""Of every drop it is told when its packet was offered, which way, and why."""

from collections import Counter
from dataclasses import replace

import pytest

from netem.link import MAX_NOTED, Cause, DropLog, Packet, Path, PathTally, QuotedFlow, WayTally
from netem.link.transit import MAX_BYTES
from netem.profile import (
    Blackout,
    Block,
    Conditions,
    Fades,
    Jitter,
    Mtu,
    Nat,
    Police,
    Profile,
    RandomLoss,
    Rate,
    Way,
)
from tests.pure.netem.sending import FLOW, numbered

ERROR = QuotedFlow(*FLOW)
OTHER = FLOW._replace(client=FLOW.client._replace(port=6))


def both(**conditions: object) -> Profile:
    side = replace(Conditions(), **conditions)  # type: ignore[arg-type]
    return Profile(name="p", up=side, down=side)


def counted(tally: WayTally) -> dict[str, int]:
    """What was dropped, by cause."""
    gate = {name: getattr(tally, name) for name in ("blocked", "policed", "too_big", "unbound")}
    link = ("lost", "faded", "blacked_out", "queue_dropped", "overflowed")
    every = gate | {name: getattr(tally.link, name) for name in link}
    return {cause: count for cause, count in every.items() if count}


def logged(profile: Profile, *offers: tuple[float, Way, Packet]) -> tuple[DropLog, PathTally]:
    """What is noted of a path that began at 100 s; the offers' moments count from there."""
    log = DropLog(100.0)
    path = Path(profile, 1, 100.0, log.note)
    for at, way, packet in offers:
        path.pop_due(100.0 + at)
        path.offer(way, packet, 100.0 + at)
    path.pop_due(1e6)
    tally = path.tally()
    for way, told in ((Way.UP, tally.up), (Way.DOWN, tally.down)):
        assert Counter(cause for _, gone, cause in log.noted if gone is way) == counted(told)
    return log, tally


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize(
    ("cause", "profile"),
    [
        ("lost", both(loss=RandomLoss(rate=1.0))),
        ("faded", both(fades=Fades(every=1e6, length=1e6 - 1e-6))),
        ("blacked_out", both(blackouts=(Blackout(start=0.25, length=1.0),))),
        ("too_big", both(mtu=Mtu(size=99))),
        ("blocked", Profile(name="p", block=Block())),
        ("policed", Profile(name="p", police=Police(bits_per_second=8.0, burst=50))),
    ],
)
def test_a_drop_is_noted_with_its_moment_way_and_cause(
    cause: Cause, profile: Profile, way: Way
) -> None:
    log, _ = logged(profile, (0.25, way, numbered(0)), (0.75, way, numbered(1)))
    assert log.noted == [(0.25, way, cause), (0.75, way, cause)]
    assert (log.started, log.more) == (100.0, 0)


@pytest.mark.parametrize("jitter", [None, Jitter(spread=0.01, reordering=True)])
def test_what_is_dropped_on_its_way_is_noted_by_the_moment_of_its_offer(
    jitter: Jitter | None,
) -> None:
    narrow = both(delay=1.0, jitter=jitter, bottleneck=Rate(bits_per_second=800.0, queue=1))
    offers = [(at, Way.UP, numbered(number)) for number, at in enumerate((0.0, 0.25, 0.75))]
    log, _ = logged(narrow, *offers)
    assert log.noted == [(0.25, Way.UP, "queue_dropped"), (0.75, Way.UP, "queue_dropped")]


@pytest.mark.parametrize("jitter", [None, Jitter(spread=0.01, reordering=True)])
def test_what_is_above_the_link_s_own_bound_is_noted(jitter: Jitter | None) -> None:
    wide = both(delay=1.0, jitter=jitter, bottleneck=jitter and Rate(bits_per_second=1e12, queue=9))
    huge = Packet(b"", MAX_BYTES)
    log, _ = logged(wide, (0.0, Way.DOWN, huge), (0.5, Way.DOWN, huge))
    assert log.noted == [(0.5, Way.DOWN, "overflowed")]


def test_what_has_no_binding_is_noted() -> None:
    stranger = numbered(1)._replace(flow=OTHER)
    error = numbered(2)._replace(flow=ERROR)
    log, _ = logged(
        Profile(name="p", nat=Nat()),
        (0.25, Way.DOWN, stranger),
        (0.5, Way.UP, error),
        (0.75, Way.UP, numbered(3)),
    )
    assert log.noted == [(0.25, Way.DOWN, "unbound"), (0.5, Way.UP, "unbound")]


def test_a_path_that_nobody_listens_to_counts_all_the_same() -> None:
    path = Path(both(loss=RandomLoss(rate=1.0)), 1, 0.0)
    path.offer(Way.UP, numbered(0), 0.0)
    assert path.tally().up.link.lost == 1


def test_no_more_are_noted_than_the_bound_and_the_rest_are_counted() -> None:
    offers = [(n * 1e-3, Way.UP, numbered(n)) for n in range(MAX_NOTED + 3)]
    log = DropLog(0.0)
    path = Path(both(loss=RandomLoss(rate=1.0)), 1, 0.0, log.note)
    for at, way, packet in offers:
        path.offer(way, packet, at)
    assert (len(log.noted), log.more) == (MAX_NOTED, 3)
    assert log.noted[-1] == ((MAX_NOTED - 1) * 1e-3, Way.UP, "lost")


def test_bytes_are_those_of_whole_packets_whatever_became_of_them() -> None:
    profile = replace(
        both(mtu=Mtu(size=1000), loss=RandomLoss(rate=0.5), duplicate=0.5),
        block=Block(first_packets=2),
    )
    sizes = [100, 1001, 200, 1000, 28]
    offers = [(0.0, Way.UP, numbered(n, size)) for n, size in enumerate(sizes)]
    _, tally = logged(profile, *offers, (0.0, Way.DOWN, numbered(9, 1500)))
    assert (tally.up.too_big, tally.up.blocked, tally.up.offered) == (1, 2, 5)
    assert (tally.up.size, tally.down.size) == (sum(sizes), 1500)
