"""What a path does to packets, as values: the meaning of a profile, with every unit resolved.

Times are seconds, rates of events are fractions from 0 to 1, bit rates are bits per second, sizes
are bytes of the whole IP packet.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

__all__ = [
    "Answer",
    "Blackout",
    "Block",
    "Bottleneck",
    "Conditions",
    "Distribution",
    "Fades",
    "GilbertElliott",
    "Jitter",
    "Mtu",
    "Nat",
    "Police",
    "Profile",
    "RandomLoss",
    "Rate",
    "Schedule",
    "Way",
]


class Way(StrEnum):
    """A direction of the path, named as subscribers' lines are: up goes to the server."""

    UP = "up"
    DOWN = "down"

    @property
    def back(self) -> "Way":
        return Way.DOWN if self is Way.UP else Way.UP


class Distribution(StrEnum):
    NORMAL = "normal"
    UNIFORM = "uniform"
    PARETO = "pareto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Jitter:
    """A variation of the delay, drawn for each packet.

    `spread` is the standard deviation of `normal`, half the width of `uniform`, and the unit of
    `pareto` (a long tail of late packets, 0.82 of the spread as standard deviation); `normal` and
    `pareto` are cut at four spreads, as in the tables of tc-netem.
    A delay never falls below zero. Unless `reordering`, no packet overtakes another, as on a radio
    link; with it each goes by its own draw, as over several routes.
    """

    spread: float
    distribution: Distribution = Distribution.NORMAL
    reordering: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomLoss:
    """Each packet is lost alone, with this probability (Bernoulli)."""

    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GilbertElliott:
    """Loss in bursts, clocked by packets (Gilbert 1960, Elliott 1963; `gemodel` of tc-netem).

    Before each packet's fate is drawn from the state it meets, the state moves on after it:
    `to_bad` is netem's p, `to_good` its r, `loss_bad` its 1-h, `loss_good` its 1-k.
    """

    to_bad: float
    to_good: float
    loss_bad: float = 1.0
    loss_good: float = 0.0

    @classmethod
    def of_mean(cls, loss: float, burst: float) -> "GilbertElliott":
        """The simple Gilbert model that loses `loss` on average, in bursts of `burst` packets."""
        to_good = 1.0 / burst
        return cls(to_bad=to_good * loss / (1.0 - loss), to_good=to_good)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fades:
    """Loss in fades, clocked by time: what a radio does, however many packets are in the air.

    Clear spells and fades last exponentially distributed times of mean `every - length` and
    `length`: one fade per `every` on average.
    """

    every: float
    length: float
    loss: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Blackout:
    """Nothing passes from `start` on for `length`, and again each `every` after that start."""

    start: float
    length: float
    every: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A bottleneck of constant rate with a queue that drops at its tail."""

    bits_per_second: float
    queue: int
    """Packets that may wait, with the one on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A bottleneck that follows a trace of mahimahi's format, repeated for ever.

    `opportunities` are milliseconds since the start, not falling: at each, 1,500 bytes may leave.
    The last one is the period. An opportunity nobody uses is lost.
    """

    opportunities: tuple[int, ...]
    queue: int
    name: str = "trace"


Bottleneck = Rate | Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Mtu:
    """Packets above `size` do not pass; with `answers` the sender is told by ICMP, as it should.

    Without, it is a black hole (RFC 8899 lives with those).
    """

    size: int
    answers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What one direction does."""

    delay: float = 0.0
    jitter: Jitter | None = None
    loss: RandomLoss | GilbertElliott | None = None
    fades: Fades | None = None
    blackouts: tuple[Blackout, ...] = ()
    bottleneck: Bottleneck | None = None
    reorder: float = 0.0
    """Fraction of packets that skip the delay and so overtake (tc-netem's `reorder`)."""
    duplicate: float = 0.0
    corrupt: float = 0.0
    """Fraction of packets in which one bit is turned."""
    mtu: Mtu | None = None


class Answer(StrEnum):
    """What a firewall says to the sender of a packet it does not pass."""

    DROP = "drop"
    REJECT = "reject"
    """ICMP port unreachable (RFC 792, type 3 code 3; RFC 4443, type 1 code 4)."""
    PROHIBIT = "prohibit"
    """ICMP administratively prohibited (type 3 code 13; RFC 4443, type 1 code 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """UDP is not passed, but for the first packets of each flow, counted in each direction."""

    answer: Answer = Answer.DROP
    first_packets: int = 0
    way: Way | None = None
    """The direction that is blocked; None: both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Police:
    """All UDP of a direction together, held to a token bucket that drops what is above it."""

    bits_per_second: float
    burst: int
    """Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nat:
    """A NAT of endpoint-dependent filtering before the client (RFC 4787).

    All its bindings are forgotten at the moments `rebind_at`, and each `rebind_every` after the
    last of them, or after the start where there are none; one of them after `idle` without a
    packet from inside, or from either side with `inbound_refresh`.
    """

    rebind_every: float | None = None
    rebind_at: tuple[float, ...] = ()
    idle: float | None = None
    inbound_refresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A path as its users meet it: both directions, and what stands in its middle."""

    name: str
    summary: str = ""
    up: Conditions = field(default_factory=Conditions)
    down: Conditions = field(default_factory=Conditions)
    block: Block | None = None
    police: Police | None = None
    udp_port: int | None = None
    """The server's port that `block` and `police` look at; None: every UDP packet."""
    nat: Nat | None = None
    sources: MappingProxyType[str, str] = field(default_factory=lambda: _NO_SOURCES)
    """Where each value comes from, by its key in the file: `delay`, `up.rate`, `nat.idle`."""

    def conditions(self, way: Way) -> Conditions:
        return self.up if way is Way.UP else self.down


_NO_SOURCES: Final[MappingProxyType[str, str]] = MappingProxyType({})
