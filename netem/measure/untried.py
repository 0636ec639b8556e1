"""What a profile says that a measurement of so many packets at such a rate does not show."""

from collections.abc import Iterator
from itertools import pairwise

from netem.measure.model import IP_AND_UDP
from netem.measure.plan import FASTEST, LARGEST6
from netem.measure.running import Measurement
from netem.profile.conditions import Profile, Schedule, Way

__all__ = ["untried"]


def untried(profile: Profile, measurement: Measurement) -> Iterator[str]:
    """In words, with what would show it."""
    plan = measurement.plan
    size = plan.size + IP_AND_UDP[False]
    for way in Way:
        if not measurement.directions[way].sent:
            yield f"{way}: anything, for nothing came that could be answered"
            continue
        conditions = profile.conditions(way)
        narrow = conditions.bottleneck
        lost_none = not measurement.directions[way].lost
        if narrow is not None:
            rate = (
                narrow.bits_per_second
                if not isinstance(narrow, Schedule)
                else len(narrow.opportunities) * 1.2e7 / narrow.opportunities[-1]
            )
            fills = rate / 8 / size
            if plan.rate < fills:
                remedy = f"--rate {fills * 1.2:.0f}"
                if fills * 1.2 > FASTEST:
                    remedy = f"--size {LARGEST6}"
                yield f"{way}: the rate and its queue of {narrow.queue} ({remedy})"
        largest = conditions.mtu.size if conditions.mtu is not None else size - 1
        if size <= largest and lost_none:
            yield f"{way}: the mtu (--size {largest - IP_AND_UDP[False] + 1})"
        for blackout in conditions.blackouts:
            if plan.duration < blackout.start:
                more = round(plan.rate * (blackout.start + 1))
                yield f"{way}: a blackout at {blackout.start:g} s (--packets {more})"
    yield from _nat(profile, measurement)


def _nat(profile: Profile, measurement: Measurement) -> Iterator[str]:
    nat = profile.nat
    if nat is None:
        return
    sent = measurement.recorded.records[Way.UP].sent_at
    pause = max((after - before for before, after in pairwise(sent)), default=0.0)
    if nat.idle and pause < nat.idle:
        yield f"the NAT's idle time of {nat.idle:g} s: packets came more often"
    if nat.rebind_every or nat.rebind_at:
        yield "the ports of the NAT: whoever measures answers to where a packet came from"
