"""What a path would do to the packets of a measurement, in virtual time: pure.

For figures that no formula gives: a queue that overflows, fades and blackouts within the few
seconds that were measured, the delay of jitter that keeps the order.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from netem.link import Endpoint, Flow, Packet, Path
from netem.measure.plan import Plan, Record
from netem.measure.statistics import Arrival
from netem.profile.conditions import Jitter, Profile, Rate, Schedule, Way

__all__ = ["IP_AND_UDP", "fitting_rate", "linger_of", "model"]

IP_AND_UDP: Final = {False: 28, True: 48}
"""Bytes of headers, by whether it is IPv6."""
_FLOW: Final = Flow(17, Endpoint("client", 1), Endpoint("server", 2))
_FAR: Final = 6.0
"""Spreads of jitter after which a packet is no longer waited for."""
_MARGIN: Final = 0.3
_SHARE: Final = 0.5
"""Of a bottleneck, that a measurement fills unless told otherwise: no queue, no loss by it."""
_USUAL_RATE: Final = 4_000.0


def model(
    profile: Profile,
    seed: int,
    sent_at: Mapping[Way, Sequence[float]],
    size: int,
    started: float | None = None,
) -> dict[Way, Record]:
    """The record of packets of `size` bytes on the wire sent at these times, over a `Path`.

    `started` is when the path did, or the first packet if None.
    """
    first = min((times[0] for times in sent_at.values() if times), default=0.0)
    path = Path(profile, seed, first if started is None else min(started, first))
    sends = sorted(
        (at, way, number) for way, times in sent_at.items() for number, at in enumerate(times)
    )
    arrivals: dict[Way, list[Arrival]] = {way: [] for way in sent_at}
    # A server answers to where the last packet came from, which a NAT may have changed.
    flow = _FLOW

    def pop_until(now: float) -> None:
        nonlocal flow
        while (due := path.next_deadline()) is not None and due <= now:
            for way, packet in path.pop_due(due):
                arrivals[way].append(Arrival(int.from_bytes(packet.data), due))
                if way is Way.UP and packet.flow is not None:
                    flow = packet.flow

    for at, way, number in sends:
        pop_until(at)
        path.offer(way, Packet(number.to_bytes(4), size, flow if way is Way.DOWN else _FLOW), at)
    pop_until(float("inf"))
    return {way: Record(tuple(times), tuple(arrivals[way])) for way, times in sent_at.items()}


def linger_of(profile: Profile, plan: Plan) -> float:
    """How long after the last was sent a packet may still come."""
    return _MARGIN + max(_latest(profile, way, plan) for way in Way)


def fitting_rate(profile: Profile, size: int) -> float:
    """Packets a second that leave every queue of the profile empty."""
    rates = [_USUAL_RATE]
    for way in Way:
        capacity = _capacity(profile, way)
        if capacity is not None:
            rates.append(_SHARE * capacity / (8 * size))
    return max(1.0, min(rates))


def _latest(profile: Profile, way: Way, plan: Plan) -> float:
    conditions = profile.conditions(way)
    latest = conditions.delay
    if isinstance(conditions.jitter, Jitter):
        latest += _FAR * conditions.jitter.spread
    capacity = _capacity(profile, way)
    if capacity is not None and conditions.bottleneck is not None:
        waiting = min(conditions.bottleneck.queue, plan.packets)
        latest += waiting * (plan.size + IP_AND_UDP[True]) * 8 / capacity
    return latest


def _capacity(profile: Profile, way: Way) -> float | None:
    """Bits a second."""
    match profile.conditions(way).bottleneck:
        case Rate(bits_per_second=rate):
            return rate
        case Schedule(opportunities=opportunities):
            return len(opportunities) * 1500 * 8 / (opportunities[-1] / 1e3)
        case None:
            return None
