"""A profile in words and units, and as plain values."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum

from netem.profile import (
    Conditions,
    GilbertElliott,
    Profile,
    RandomLoss,
    Rate,
    Schedule,
    Way,
)

__all__ = ["as_plain", "in_words"]


def in_words(profile: Profile) -> Iterator[str]:
    """A line for each thing that the profile does; a thing both directions do is said once."""
    up, down = (list(_direction(profile.conditions(way))) for way in Way)
    for line in up:
        yield f"both   {line}" if line in down else f"up     {line}"
    for line in down:
        if line not in up:
            yield f"down   {line}"
    yield from (f"path   {line}" for line in _middle(profile))


def _direction(conditions: Conditions) -> Iterator[str]:
    yield from _time(conditions)
    yield from _losses(conditions)
    for name, share in (
        ("reorder", conditions.reorder),
        ("duplicate", conditions.duplicate),
        ("corrupt", conditions.corrupt),
    ):
        if share:
            yield f"{name} {_percent(share)}"
    if conditions.mtu is not None:
        told = "the sender is told" if conditions.mtu.answers else "nobody is told"
        yield f"MTU {conditions.mtu.size} bytes, {told}"


def _time(conditions: Conditions) -> Iterator[str]:
    if conditions.delay:
        yield f"delay {_seconds(conditions.delay)}"
    jitter = conditions.jitter
    if jitter is not None:
        order = "may overtake" if jitter.reordering else "in order"
        yield f"jitter {_seconds(jitter.spread)}, {jitter.distribution}, {order}"
    match conditions.bottleneck:
        case Rate(bits_per_second=rate, queue=queue):
            yield f"rate {_bits(rate)}, a queue of {queue} packets"
        case Schedule(name=name, queue=queue, opportunities=opportunities):
            period = _seconds(opportunities[-1] / 1e3)
            yield f"rate by {name}, over {period}, a queue of {queue} packets"
        case None:
            pass


def _losses(conditions: Conditions) -> Iterator[str]:
    match conditions.loss:
        case RandomLoss(rate=rate):
            yield f"loss {_percent(rate)}, each packet alone"
        case GilbertElliott() as model:
            into, out = _percent(model.to_bad), _percent(model.to_good)
            bad, good = _percent(model.loss_bad), _percent(model.loss_good)
            yield f"loss in bursts: into one {into}, out of it {out}; in it {bad}, else {good}"
        case None:
            pass
    fades = conditions.fades
    if fades is not None:
        length, every = _seconds(fades.length), _seconds(fades.every)
        yield f"fades of {length} every {every} on average, losing {_percent(fades.loss)}"
    for blackout in conditions.blackouts:
        again = "" if blackout.every is None else f", and every {_seconds(blackout.every)}"
        yield f"nothing for {_seconds(blackout.length)} from {_seconds(blackout.start)} on{again}"


def _middle(profile: Profile) -> Iterator[str]:
    where = "every UDP packet" if profile.udp_port is None else f"UDP port {profile.udp_port}"
    if profile.block is not None:
        first = profile.block.first_packets
        but = f", but for the first {first} of a flow" if first else ""
        way = "" if profile.block.way is None else f" on its way {profile.block.way}"
        yield f"block {where}{way}{but}: {profile.block.answer}"
    if profile.police is not None:
        police = profile.police
        yield f"police {where} to {_bits(police.bits_per_second)}, bursts of {police.burst} bytes"
    nat = profile.nat
    if nat is not None:
        moments = [f"at {_seconds(at)}" for at in nat.rebind_at]
        if nat.rebind_every is not None:
            moments.append(f"every {_seconds(nat.rebind_every)}")
        if nat.idle is not None:
            also = "either side" if nat.inbound_refresh else "inside"
            moments.append(f"after {_seconds(nat.idle)} without a packet from {also}")
        yield "NAT, forgetting bindings " + (", ".join(moments) or "never")


def _seconds(value: float) -> str:
    return f"{1e3 * value:g} ms" if value < 1 else f"{value:g} s"


def _percent(share: float) -> str:
    return f"{100 * share:.6g} %"


def _bits(rate: float) -> str:
    return f"{rate / 1e6:g} Mbit/s" if rate >= 1e6 else f"{rate / 1e3:g} kbit/s"


def as_plain(value: object) -> object:
    """Of JSON's types; of a trace only its name and its length."""
    if isinstance(value, Schedule):
        opportunities = len(value.opportunities)
        return {"trace": value.name, "opportunities": opportunities, "queue": value.queue}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [as_plain(item) for item in value]
    if is_dataclass(value):
        named = {each.name: getattr(value, each.name) for each in fields(value)}
        return {name: as_plain(item) for name, item in named.items()}
    return dict(value) if isinstance(value, Mapping) else value
