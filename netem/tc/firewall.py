"""What `nft` does to the packets that pass a router: UDP blocked or policed, an MTU."""

from dataclasses import dataclass
from typing import Final

from netem.profile.conditions import Answer, Block, Police, Profile, Way
from netem.tc.lines import TABLE, Command, Hop

__all__ = ["firewall", "second_of"]

FLOWS: Final = 65_536
"""Flows remembered at once, each way and family; beyond them a new flow is not blocked."""
FORGET: Final = "1h"
"""A flow that sent nothing for so long is a new one."""
_VERDICT: Final = {
    Answer.DROP: "drop",
    Answer.REJECT: "reject with icmpx port-unreachable",
    Answer.PROHIBIT: "reject with icmpx admin-prohibited",
}
_FLOW: Final = "{family} saddr . udp sport . {family} daddr . udp dport"
_FAMILIES: Final = {"ip": "ipv4_addr", "ip6": "ipv6_addr"}


def firewall(profile: Profile, hop: Hop, udp_port: int | None) -> list[Command]:
    """The lines that make our table; none for a profile that needs no table."""
    rules = [
        rule
        for way in Way
        for rule in _rules(_Passage(hop, way, udp_port or profile.udp_port), profile)
    ]
    if not rules:
        return []
    chains = ("forward",) if hop.is_router else ("input", "output")
    # Never `add`: lines that are run twice would count every packet twice, and say nothing.
    lines = [f"create table inet {TABLE}"]
    lines += [
        f"add chain inet {TABLE} {chain} "
        f"{{ type filter hook {chain} priority 0 ; policy accept ; }}"
        for chain in chains
    ]
    block = profile.block
    if block is not None and block.first_packets:
        ways = Way if block.way is None else (block.way,)
        lines += [_flows(way, family) for way in ways for family in _FAMILIES]
    return [("nft", line) for line in [*lines, *rules]]


def second_of(police: Police) -> int:
    """Bytes in a second of the rate: nft's bucket holds as much, and its burst on top."""
    return max(1, round(police.bits_per_second / 8))


@dataclass(frozen=True, slots=True)
class _Passage:
    """One direction through the hop."""

    hop: Hop
    way: Way
    port: int | None

    @property
    def chain(self) -> str:
        if self.hop.is_router:
            return "forward"
        return "output" if self.hop.leaves_by(self.way) else "input"

    @property
    def devices(self) -> str:
        words: list[str] = []
        for key, device in (
            ("iifname", self.hop.enters_by(self.way)),
            ("oifname", self.hop.leaves_by(self.way)),
        ):
            if device is not None:
                words.append(f'{key} "{device}"')
        return " ".join(words)

    @property
    def udp(self) -> str:
        if self.port is None:
            return "meta l4proto udp"
        return f"udp {'dport' if self.way is Way.UP else 'sport'} {self.port}"

    def rule(self, words: str, comment: str) -> str:
        return (
            f"add rule inet {TABLE} {self.chain} {self.devices} {words}"
            f' comment "{comment} {self.way}"'
        )


def _rules(passage: _Passage, profile: Profile) -> list[str]:
    rules: list[str] = []
    mtu = profile.conditions(passage.way).mtu
    if mtu is not None and not mtu.answers:
        rules.append(passage.rule(f"meta length > {mtu.size} counter drop", "too big"))
    if profile.block is not None and profile.block.way in (None, passage.way):
        rules += _block(passage, profile.block)
    if profile.police is not None:
        rules.append(_police(passage, profile.police))
    return rules


def _block(passage: _Passage, block: Block) -> list[str]:
    verdict = f"counter {_VERDICT[block.answer]}"
    if not block.first_packets:
        return [passage.rule(f"{passage.udp} {verdict}", "blocked")]
    over = f"limit rate over 1/day burst {block.first_packets} packets"
    return [
        passage.rule(
            f"{passage.udp} update @{_set(passage.way, family)} "
            f"{{ {_FLOW.format(family=family)} {over} }} {verdict}",
            "blocked",
        )
        for family in _FAMILIES
    ]


def _set(way: Way, family: str) -> str:
    return f"{way}_{family}"


def _flows(way: Way, family: str) -> str:
    address = _FAMILIES[family]
    return (
        f"add set inet {TABLE} {_set(way, family)} "
        f"{{ type {address} . inet_service . {address} . inet_service ; "
        f"size {FLOWS} ; flags dynamic,timeout ; timeout {FORGET} ; }}"
    )


def _police(passage: _Passage, police: Police) -> str:
    second = second_of(police)
    burst = police.burst - second
    words = f"{passage.udp} limit rate over {second} bytes/second"
    if burst > 0:
        words += f" burst {burst} bytes"
    return passage.rule(f"{words} counter drop", "policed")
