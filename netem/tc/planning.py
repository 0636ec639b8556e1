"""A profile as lines for one machine: what to run, how to undo it, and what they cannot do."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from netem.profile.conditions import Conditions, Profile, Schedule, Way
from netem.tc.firewall import firewall, second_of
from netem.tc.lines import HANDLE, TABLE, Command, Ends, Hop, shell
from netem.tc.qdiscs import qdiscs

__all__ = ["Plan", "plan", "printed"]

MOST_JITTER: Final = 2.147
"""Seconds: netem cuts it off where 32 bits of nanoseconds with their sign end."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`cannot` names each part of the profile that these lines leave out, and who can do it."""

    apply: tuple[Command, ...]
    undo: tuple[Command, ...]
    cannot: tuple[str, ...]


def plan(
    profile: Profile, hop: Hop, *, ends: Ends | None = None, udp_port: int | None = None
) -> Plan:
    """The lines that make `hop` do what `profile` says.

    `udp_port` is the server's port, in place of the profile's. Both directions leave by another
    device of a router, so both are shaped where they leave, behind nft's forward hook: the same
    order as in a `Path`.
    """
    apply: list[Command] = []
    undo: list[Command] = []
    for way in Way:
        device = hop.leaves_by(way)
        lines = qdiscs(device, profile.conditions(way)) if device else []
        if device and lines:
            apply += lines
            undo.append(("tc", "qdisc", "del", "dev", device, "root", "handle", HANDLE))
    rules = firewall(profile, hop, udp_port)
    if rules:
        apply += rules
        undo.append(("nft", f"delete table inet {TABLE}"))
    for way in Way:
        for command in _routes(profile.conditions(way), hop, way, ends):
            apply.append(command)
            undo.append(tuple("del" if word == "add" else word for word in command))
    return Plan(tuple(apply), tuple(undo), tuple(_cannot(profile, hop, ends)))


def printed(
    profile: Profile, hop: Hop, *, ends: Ends | None = None, udp_port: int | None = None
) -> list[str]:
    """The plan as an engineer would type it, with comments for what it leaves out."""
    made = plan(profile, hop, ends=ends, udp_port=udp_port)
    summary = f": {profile.summary}" if profile.summary else ""
    lines = [f"# {profile.name}{summary}"]
    lines += [f"# not done by these lines: {text}" for text in made.cannot]
    lines += [shell(command) for command in made.apply]
    if made.undo:
        lines += ["# to undo", *(shell(command) for command in made.undo)]
    return lines


def _routes(conditions: Conditions, hop: Hop, way: Way, ends: Ends | None) -> Iterator[Command]:
    """An MTU whose router answers by ICMP: the kernel does so for a route's own MTU."""
    device = hop.leaves_by(way)
    mtu = conditions.mtu
    if mtu is None or not mtu.answers or ends is None or not hop.is_router or device is None:
        return
    for address in ends.target(way):
        family = "-6" if ":" in address else "-4"
        yield ("ip", family, "route", "add", address, "dev", device, "mtu", "lock", str(mtu.size))


def _cannot(profile: Profile, hop: Hop, ends: Ends | None) -> Iterator[str]:
    for way in Way:
        yield from _cannot_way(way, profile.conditions(way), hop, ends)
        if not hop.is_router and hop.leaves_by(way) and _drops(profile, way):
            yield (
                f"{way}: what this host sends itself is not lost but refused to its program "
                "(sendto: Operation not permitted); run the lines on a router"
            )
    if profile.nat is not None:
        yield "nat: a NAT that forgets on schedule needs the tun, veth or relay driver"
    police = profile.police
    if police is not None and police.burst < second_of(police):
        yield (
            "udp.police_burst: nft's bucket holds at least a second of the rate; "
            "the tun and veth drivers keep to it"
        )


def _drops(profile: Profile, way: Way) -> bool:
    """Whether nft drops packets of this direction."""
    mtu = profile.conditions(way).mtu
    silent = mtu is not None and not mtu.answers
    blocked = profile.block is not None and profile.block.way in (None, way)
    return silent or blocked or profile.police is not None


def _cannot_way(way: Way, conditions: Conditions, hop: Hop, ends: Ends | None) -> Iterator[str]:
    if conditions.fades is not None:
        yield f"{way}.fade: netem's losses are clocked by packets; use the tun or veth driver"
    if conditions.blackouts:
        yield f"{way}.blackout: tc has no schedule; use the tun or veth driver"
    if conditions.jitter is not None and conditions.jitter.spread > MOST_JITTER:
        yield f"{way}.jitter: netem's ends at {MOST_JITTER} s; use the tun or veth driver"
    if isinstance(conditions.bottleneck, Schedule):
        yield f"{way}.trace: tc has no rate that follows a trace; use the tun or veth driver"
    if conditions.mtu is not None and conditions.mtu.answers and not (ends and hop.is_router):
        yield (
            f"{way}.too_big: an answer by ICMP needs a router that knows the addresses of both "
            "ends; use the tun, veth or tc driver"
        )
    if hop.leaves_by(way) is None and qdiscs("device", conditions):
        yield (
            f"{way}: a device shapes only what leaves it; "
            "run the lines on the other end too, or on a router"
        )
