"""A bed that begins anew, with other conditions or the same, and what it dropped meanwhile."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from dataclasses import replace

import pytest

from netem.drivers.linkbed import LinkBed
from netem.emulator import MOST_LEAVING
from netem.errors import ImpairmentError
from netem.link import MAX_NOTED
from netem.profile import Block, Conditions, Nat, Profile, RandomLoss, Schedule, Way
from tests.netem.conftest import Make
from tests.netem.hosts import bound
from tests.netem.outer import eventually

CLEAR = Profile(name="clear")
SIDE = Conditions(delay=0.03, loss=RandomLoss(rate=0.05))
LOSS5 = Profile(name="loss5", up=SIDE, down=SIDE)


def burst(bed: LinkBed, count: int, size: int = 100) -> None:
    """So many packets go up, without a pause, and are offered to the path."""
    with bound(bed.server, socket.AF_INET) as server, bound(bed.client, socket.AF_INET) as client:
        before = bed.tally().path.up.offered
        for number in range(count):
            client.sendto(bytes(size - 28), server.getsockname())
            if number % 100 == 99:
                time.sleep(0.001)
        assert eventually(lambda: bed.tally().path.up.offered == before + count)


def test_the_counts_begin_anew(make: Make) -> None:
    bed = make(LOSS5)
    ping = bed.client.popen(["ping", "-qc5", "-i0.01", bed.server.ipv4], stdout=subprocess.DEVNULL)
    ping.wait()
    assert bed.tally().path.up.offered == 5
    bed.restart()
    assert bed.tally().path.up.offered == 0


def test_the_drops_are_told_with_their_moments(make: Make) -> None:
    bed = make(LOSS5)
    began = time.monotonic()
    burst(bed, 1000)
    drops = bed.drops()
    lost = bed.tally().path.up.link.lost
    assert (len(drops.first), drops.more) == (lost, 0)
    assert {(drop.way, drop.cause) for drop in drops.first} == {(Way.UP, "lost")}
    moments = [drops.started + drop.at for drop in drops.first]
    assert began < moments[0] <= moments[-1] < time.monotonic()
    assert moments == sorted(moments)
    assert bed.tally().path.up.size == 100_000
    bed.restart()
    anew = bed.drops()
    assert (anew.first, anew.more) == ((), 0)
    assert anew.started > moments[-1]
    bed.close()
    with pytest.raises(ImpairmentError, match="ask for the drops before"):
        bed.drops()


def test_more_drops_than_a_message_holds_are_told_up_to_their_bound(make: Make) -> None:
    bed = make(replace(LOSS5, up=Conditions(loss=RandomLoss(rate=1.0))))
    burst(bed, MAX_NOTED + 7)
    drops = bed.drops()
    assert (len(drops.first), drops.more) == (MAX_NOTED, 7)


def test_another_profile_or_seed_counts_from_the_restart_on(make: Make) -> None:
    def lost(bed: LinkBed) -> list[int]:
        """Which of 400 packets."""
        with bound(bed.server, socket.AF_INET) as server, bound(bed.client, socket.AF_INET) as end:
            for number in range(400):
                end.sendto(number.to_bytes(2), server.getsockname())
            assert eventually(lambda: bed.tally().path.up.link.in_flight == 0)
            server.settimeout(0.1)
            got = set()
            with contextlib.suppress(TimeoutError):
                while True:
                    got.add(int.from_bytes(server.recv(99)))
        return sorted(set(range(400)) - got)

    bed = make(LOSS5, 7)
    first = lost(bed)
    bed.restart(seed=8)
    second = lost(bed)
    bed.restart(seed=7)
    again = lost(bed)
    assert first == again != second
    # Larger than any message: a trace of 200,000 moments.
    trace = Schedule(name="t", opportunities=tuple(range(1, 200_001)), queue=1)
    bed.restart(profile=Profile(name="large", up=Conditions(bottleneck=trace), nat=Nat()))
    assert lost(bed) != first
    assert bed.tally().path.up.link.queue_dropped > 200
    bed.restart(profile=LOSS5)
    assert lost(bed) == first
    bed.restart(profile=Profile(name="clear"), seed=9)
    assert lost(bed) == []


def test_a_change_loses_nothing_that_is_under_way(make: Make) -> None:
    def slow(delay: float, block: Block | None = None) -> Profile:
        return Profile(name=f"{delay} s", up=Conditions(delay=delay), block=block)

    bed = make(slow(0.4))
    with bound(bed.server, socket.AF_INET) as server, bound(bed.client, socket.AF_INET) as client:
        server.settimeout(5)
        client.sendto(b"slow", server.getsockname())
        assert eventually(lambda: bed.tally().path.up.link.in_flight == 1)
        bed.change(slow(0.05))
        client.sendto(b"quick", server.getsockname())
        assert server.recv(99) == b"quick"
        bed.change(slow(0.0, block=Block(way=Way.UP)))
        client.sendto(b"blocked", server.getsockname())
        assert server.recv(99) == b"slow"
        assert bed.tally().path.up.blocked == 1
        bed.change(slow(0.0))
        client.sendto(b"at once", server.getsockname())
        assert server.recv(99) == b"at once"


def test_of_many_changes_the_oldest_packets_are_gone(make: Make) -> None:
    bed = make(Profile(name="slow", up=Conditions(delay=0.5)))
    with bound(bed.server, socket.AF_INET) as server, bound(bed.client, socket.AF_INET) as client:
        server.settimeout(1)
        for number in range(MOST_LEAVING + 2):
            client.sendto(number.to_bytes(2), server.getsockname())
            assert eventually(lambda: bed.tally().path.up.link.in_flight == 1)
            bed.change(Profile(name="slow", up=Conditions(delay=0.5)))
        got = set()
        with contextlib.suppress(TimeoutError):
            while True:
                got.add(int.from_bytes(server.recv(99)))
    assert got == set(range(2, MOST_LEAVING + 2))


def test_restarts_leave_no_descriptor(make: Make) -> None:
    bed = make(CLEAR)
    ours = f"/proc/{os.getpid()}/fd"
    theirs = f"/proc/{bed.emulator_pid}/fd"
    before = [len(os.listdir(each)) for each in (ours, theirs)]
    for seed in range(5):
        bed.restart(seed=seed)
        bed.change(CLEAR, seed)
        bed.drops()
    assert [len(os.listdir(each)) for each in (ours, theirs)] == before
