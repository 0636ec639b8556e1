"""What the link promises, measured with real packets through a TUN, beside what was set.

10,000 packets a second each way is what the emulator and the measuring do together on one of two
processors without being late: the median delay stays within 0.1 ms of the setting.
"""

import os
from dataclasses import replace

import pytest

from netem.catalogue import Catalogue
from netem.drivers.tun import TunBed
from netem.errors import ImpairmentError
from netem.kernel.interfaces import open_tun
from netem.kernel.namespaces import Namespace
from netem.link import Link, Packet
from netem.measure.model import linger_of
from netem.measure.over_bed import measure_bed
from netem.measure.plan import Plan
from netem.measure.statistics import Direction
from netem.profile.conditions import Profile, Way

# Chosen before the first run.
SEEDS = (1, 2, 3, 4, 5)
RATE = 10_000.0


def no_tun() -> str | None:
    try:
        with Namespace.new() as trial:
            os.close(open_tun(trial, "trial"))
    except ImpairmentError as error:
        return str(error)
    return None


pytestmark = pytest.mark.skipif(no_tun() is not None, reason=f"{no_tun()}")


def load(name: str) -> Profile:
    return Catalogue().load(name)


def measured(
    profile: Profile, seed: int, packets: int, *, ipv6: bool = False
) -> dict[Way, Direction]:
    plan = Plan(packets=packets, rate=RATE)
    plan = replace(plan, linger=linger_of(profile, plan))
    with TunBed(profile, seed) as bed:
        measurement = measure_bed(bed, profile, plan, ipv6=ipv6)
        if measurement.starved:
            # Once more: that says nothing about the link, but a second time it does.
            bed.restart()
            measurement = measure_bed(bed, profile, plan, ipv6=ipv6)
    return measurement.directions


def lost_in_theory(profile: Profile, way: Way, seed: int, packets: int) -> tuple[int, ...]:
    """By the link alone, with no packet and no clock."""
    link = Link(profile.conditions(way), f"{seed}/{way}", 0.0)
    lost = []
    for number in range(packets):
        before = link.tally.lost
        link.offer(Packet(b"", 128), number / RATE)
        link.pop_due(number / RATE)
        if link.tally.lost > before:
            lost.append(number)
    return tuple(lost)


@pytest.mark.parametrize("seed", SEEDS)
def test_five_in_a_hundred_are_lost_each_way(seed: int) -> None:
    profile, packets = load("loss5"), 20_000
    for way, found in measured(profile, seed, packets, ipv6=seed % 2 == 0).items():
        assert found.sent == packets
        assert found.loss == pytest.approx(0.05, abs=0.005), f"seed {seed}, {way}"
        assert found.lost == lost_in_theory(profile, way, seed, packets)
        assert (found.duplicated, found.reordered, found.corrupted) == (0, 0, 0)
        assert found.delays is not None
        assert found.delays.median == pytest.approx(0.030, abs=0.001)
        assert found.delays.least >= 0.030


def test_the_same_seed_loses_the_same_packets() -> None:
    profile, packets = load("loss5"), 5_000
    one, two, other = (measured(profile, seed, packets) for seed in (7, 7, 8))
    for way in Way:
        assert one[way].lost == two[way].lost
        assert one[way].lost != other[way].lost
    assert one[Way.UP].lost != one[Way.DOWN].lost


def test_bursts_have_the_length_that_was_set() -> None:
    for way, found in measured(load("loss5-burst"), 1, 34_000).items():
        assert found.bursts.mean == pytest.approx(3.0, rel=0.1), way
        assert found.loss == pytest.approx(0.05, abs=0.005), way


@pytest.mark.parametrize("ipv6", [False, True])
def test_nothing_is_lost_unless_it_was_set(ipv6: bool) -> None:
    for found in measured(load("clear"), 1, 10_000, ipv6=ipv6).values():
        assert (found.received, found.loss, found.reordered) == (10_000, 0.0, 0)
        assert found.delays is not None
        assert found.delays.median < 0.001
