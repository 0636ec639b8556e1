"""A packet that was not passed, whose sender is to be told."""

from enum import Enum
from typing import Final, Literal, NamedTuple

from netem.link.packet import Packet
from netem.profile import Answer

__all__ = ["TOO_BIG", "Refusal", "TooBig"]


class TooBig(Enum):
    TOO_BIG = "too big"


TOO_BIG: Final = TooBig.TOO_BIG


class Refusal(NamedTuple):
    """The driver says it by ICMP, which travels the other way like any packet."""

    answer: Literal[Answer.REJECT, Answer.PROHIBIT] | TooBig
    packet: Packet
    mtu: int = 0
    """With `TOO_BIG`, what would pass."""
