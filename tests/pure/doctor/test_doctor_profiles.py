"""Every built-in profile in virtual time: is UDP called what it is there?"""

from __future__ import annotations

import random

import pytest

from netem.catalogue import Catalogue
from tenuto.doctor.diagnosis.mtu import PathMtu, judge_mtu, next_mtu
from tenuto.doctor.diagnosis.reach import Reach, Udp, judge_reach, next_reach
from tests.support.doctorbed import VirtualBed

SEEDS = 6
BASE = 1228

BLOCKED = {
    "udp-blocked-after-handshake": (Udp.DIES, 20),
    "udp-blocked-drop": (Udp.BLOCKED, 0),
    "udp-blocked-first-packet": (Udp.FIRST_PACKET, 1),
    "udp-blocked-prohibit": (Udp.PROHIBITED, 0),
    "udp-blocked-reject": (Udp.REJECTED, 0),
    "udp-blocked-throttled": (Udp.THROTTLED, 0),
}

CATALOGUE = Catalogue()


def examined(name: str, seed: int) -> tuple[Reach, PathMtu | None]:
    """Begun at any moment of the first minute, for outages have their hours."""
    begin = random.Random(seed).uniform(0, 60)
    bed = VirtualBed(CATALOGUE.load(name), seed, begin=begin)
    reach = judge_reach(bed.examine(lambda ledger: next_reach(ledger, BASE)))
    if reach.udp is not Udp.OPEN:
        return reach, None
    found = bed.examine(lambda ledger: next_mtu(ledger, BASE, reach.loss))
    return reach, judge_mtu(found, BASE, reach.loss)


@pytest.mark.parametrize("name", CATALOGUE.names())
def test_a_profile_is_called_what_it_is(name: str) -> None:
    mtu = CATALOGUE.load(name).up.mtu
    for seed in range(SEEDS):
        reach, found = examined(name, seed)
        assert (reach.udp, reach.after) == BLOCKED.get(name, (Udp.OPEN, 0)), (seed, reach)
        if reach.udp is Udp.OPEN:
            size, told = (1500, False) if mtu is None else (mtu.size, mtu.answers)
            assert found is not None, seed
            assert (found.size, found.told) == (size, told), (seed, found)


def test_the_rate_of_a_throttle_is_measured() -> None:
    rates = [examined("udp-blocked-throttled", seed)[0].rate for seed in range(SEEDS)]
    assert all(4000 <= rate <= 9000 for rate in rates), rates


def test_an_outage_is_told_apart_from_loss() -> None:
    bed = VirtualBed(CATALOGUE.load("interop-blackhole"), 1, begin=4.5)
    reach = judge_reach(bed.examine(lambda ledger: next_reach(ledger, BASE)))
    assert reach.udp is Udp.OPEN
    assert reach.outage > 0.5
    assert reach.loss < 0.1


def test_loss_is_measured() -> None:
    losses = [examined("loss20", seed)[0].loss for seed in range(20)]
    assert sum(losses) / 20 == pytest.approx(1 - 0.8**2, abs=0.05)
