"""What a profile says that a measurement of so many packets at such a rate does not show."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from netem.measure.model import IP_AND_UDP
from netem.measure.plan import FASTEST, LARGEST6, Plan
from netem.measure.running import Measurement
from netem.profile.conditions import Bottleneck, Profile, Schedule, Way

__all__ = ["untried"]

_MORE: Final = 1.2
_ENOUGH_FADES: Final = 3


def untried(profile: Profile, measurement: Measurement) -> Iterator[str]:
    """In words, with what would show it."""
    plan = measurement.plan
    size = plan.size + IP_AND_UDP[False]
    for way in Way:
        if not measurement.directions[way].sent:
            yield f"{way}: anything, for nothing came that could be answered"
            continue
        conditions = profile.conditions(way)
        lost_none = not measurement.directions[way].lost
        if conditions.bottleneck is not None:
            yield from _queue(way, conditions.bottleneck, plan)
        if conditions.fades is not None and lost_none:
            more = round(plan.rate * conditions.fades.every * _ENOUGH_FADES)
            yield f"{way}: a fade, for none came (--packets {more})"
        largest = conditions.mtu.size if conditions.mtu is not None else size - 1
        if size <= largest and lost_none:
            yield f"{way}: the mtu (--size {largest - IP_AND_UDP[False] + 1})"
        for blackout in conditions.blackouts:
            if plan.duration < blackout.start:
                more = round(plan.rate * (blackout.start + 1))
                yield f"{way}: a blackout at {blackout.start:g} s (--packets {more})"
    yield from _nat(profile, measurement)


def _queue(way: Way, narrow: Bottleneck, plan: Plan) -> Iterator[str]:
    rate = (
        len(narrow.opportunities) * 1.2e7 / narrow.opportunities[-1]
        if isinstance(narrow, Schedule)
        else narrow.bits_per_second
    )
    size, options = plan.size, ""
    if _MORE * plan.rate >= _filling(rate, size):
        return
    if _filling(rate, size) > FASTEST:
        size, options = LARGEST6, f"--size {LARGEST6} "
    options += f"--rate {_filling(rate, size):.0f}"
    if _filling(rate, size) > FASTEST:
        options = "more than can be sent from here"
    yield f"{way}: the rate and its queue of {narrow.queue} ({options})"


def _filling(rate: float, size: int) -> float:
    """Packets a second of so many bytes that are a fifth more than pass."""
    return _MORE * rate / 8 / (size + IP_AND_UDP[False])


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
