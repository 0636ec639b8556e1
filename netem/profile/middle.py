"""What stands in the middle of a path, from its layers to its meaning: firewall and NAT."""

from itertools import pairwise
from typing import Final

from netem.profile.conditions import Answer, Block, Nat, Police, Way
from netem.profile.fields import check_needs, choice, flag, read
from netem.profile.layers import Layer
from netem.profile.units import EVERY, MOMENT, RATE, SIZE, BadValueError, Count, quoted

__all__ = ["read_block", "read_nat", "read_police", "read_port"]

DEFAULT_POLICE_BURST: Final = 3_000
"""Bytes: two full packets."""
MOST_MOMENTS: Final = 1_000
BOTH_WAYS: Final = "both"
_PASS_FIRST: Final = Count(noun="packets", least=0, most=1_000_000)
_PORT: Final = Count(noun="a UDP port", least=1, most=65_535)


def read_block(layer: Layer) -> Block | None:
    """Raises `ProfileError`."""
    check_needs(layer)
    first = read(layer, "pass_first", _PASS_FIRST.read, 0)
    way = read(layer, "block_way", choice(*Way, BOTH_WAYS), BOTH_WAYS)
    answer = read(layer, "block", choice(*Answer), None)
    if answer is None:
        return None
    return Block(
        answer=Answer(answer),
        first_packets=first,
        way=None if way == BOTH_WAYS else Way(way),
    )


def read_police(layer: Layer) -> Police | None:
    """Raises `ProfileError`."""
    burst = round(read(layer, "police_burst", SIZE.read, DEFAULT_POLICE_BURST))
    rate = read(layer, "police", RATE.read, None)
    return None if rate is None else Police(bits_per_second=rate, burst=burst)


def read_port(layer: Layer) -> int | None:
    """Raises `ProfileError`."""
    return read(layer, "port", _PORT.read, None)


def read_nat(layer: Layer) -> Nat | None:
    """Raises `ProfileError`."""
    if not layer:
        return None
    check_needs(layer)
    return Nat(
        rebind_every=read(layer, "rebind_every", EVERY.read, None),
        rebind_at=read(layer, "rebind_at", _moments, ()),
        idle=read(layer, "idle", EVERY.read, None),
        inbound_refresh=read(layer, "inbound_refresh", flag, False),
    )


def _moments(value: object) -> tuple[float, ...]:
    if not isinstance(value, list) or not value:
        raise BadValueError(
            f"{quoted(value)} is not a list of times", 'write it as in rebind_at = ["5s", "20s"]'
        )
    if len(value) > MOST_MOMENTS:
        raise BadValueError(
            f"it has {len(value):,} times, more than {MOST_MOMENTS:,}", "use rebind_every"
        )
    moments = tuple(MOMENT.read(each) for each in value)
    for earlier, later in pairwise(moments):
        if later <= earlier:
            what = f"{later:g} s does not come after {earlier:g} s"
            raise BadValueError(what, "put them in order")
    return moments
