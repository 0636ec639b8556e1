"""What was sent, what came back, and when: all that a diagnosis is made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

__all__ = [
    "Carried",
    "CertificateSeen",
    "Evidence",
    "Handshake",
    "Icmp",
    "IcmpKind",
    "Ledger",
    "Probe",
    "Seen",
    "ServerSeen",
    "Silence",
    "Transport",
]

Transport = Literal["quic", "tcp"]


class IcmpKind(StrEnum):
    PORT = "port-unreachable"
    PROHIBITED = "administratively-prohibited"
    UNREACHABLE = "unreachable"
    """No route, no host, or a protocol that nobody wants."""
    TOO_BIG = "too-big"


@dataclass(frozen=True, slots=True)
class Icmp:
    """An error about one of our packets; `mtu` is what would have passed, if that was told."""

    at: float
    flow: int
    kind: IcmpKind
    by: str
    """The address that sent it; empty where the system does not tell, or says it itself."""
    mtu: int = 0


@dataclass(frozen=True, slots=True)
class Probe:
    """A packet that any QUIC server answers; `size` is that of the whole IP packet."""

    flow: int
    number: int
    size: int
    sent: float
    answered: float | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """All probes of one examination in the order of sending, and what ICMP said of them."""

    probes: tuple[Probe, ...] = ()
    icmp: tuple[Icmp, ...] = ()
    strange: int = 0
    """Datagrams that came back and are no answers: something there speaks no QUIC."""

    def flow(self, flow: int) -> tuple[Probe, ...]:
        return tuple(probe for probe in self.probes if probe.flow == flow)

    def and_then(self, later: Ledger) -> Ledger:
        return Ledger(
            self.probes + later.probes, self.icmp + later.icmp, self.strange + later.strange
        )

    @property
    def answered(self) -> int:
        return sum(probe.answered is not None for probe in self.probes)


@dataclass(frozen=True, slots=True)
class Handshake:
    """One attempt to connect; None for what it did not come to.

    `connected` is TCP's own handshake, `secured` when TLS or QUIC was ready, both since the
    start. `failure` says why it went no further, `kind` the same in one word, `remedy` what to do
    about a certificate that is not trusted.
    """

    transport: Transport
    connected: float | None = None
    secured: float | None = None
    failure: str = ""
    kind: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class CertificateSeen:
    """The server's certificate, and both clocks at that moment, in seconds since 1970."""

    not_before: float
    not_after: float
    issuer: str
    now: float
    """This machine's clock."""
    trusted: bool
    refusal: str = ""
    """Why it is not trusted."""
    remedy: str = ""
    server_date: float | None = None
    """From the header Date; without verification where the certificate is not trusted."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Our address as the server saw it."""

    at: float
    local: str
    local_port: int
    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Silence:
    """A flow that was silent for `seconds`; None for an exchange that failed."""

    seconds: float
    before: Seen | None
    after: Seen | None


@dataclass(frozen=True, slots=True)
class Carried:
    """What came of a stream: `need` is its rate in bytes a second, 0 where it has none."""

    transport: Transport
    need: float
    size: int
    seconds: float
    """From the first byte to the last look."""
    failure: str = ""

    @property
    def rate(self) -> float:
        """Bytes a second."""
        return self.size / self.seconds if self.seconds > 0 else 0.0

    @property
    def share(self) -> float:
        """Of what it needs."""
        return self.rate / self.need if self.need else 0.0


@dataclass(frozen=True, slots=True)
class ServerSeen:
    """What the server says of itself over whichever transport answered."""

    is_tenuto: bool
    offers_quic: bool | None = None
    quic_port: int | None = None
    why_not: str = ""
    """Where it is no Tenuto server, or cannot be asked."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything; what was not examined, or not yet, is None or empty."""

    host: str
    port: int
    address: str = ""
    """The one that was examined, with its port."""
    others: tuple[str, ...] = ()
    """Other addresses of the host."""
    no_name: str = ""
    """Why the host has no address."""
    udp: Ledger | None = None
    mtu: Ledger | None = None
    handshakes: tuple[Handshake, ...] = ()
    certificate: CertificateSeen | None = None
    server: ServerSeen | None = None
    large_hangs: bool = False
    """A small request over TCP is answered, and one larger than QUIC's least packet is not."""
    carried: tuple[Carried, ...] = ()
    outside: tuple[Seen, ...] = ()
    """Of a flow that was never silent for long, in the order of time."""
    silences: tuple[Silence, ...] = ()
    nat_limit: float = 0.0
    """The longest silence that was asked for, in seconds; 0: none."""
    skipped: tuple[str, ...] = field(default=())
    """What was left out, and why, each a sentence."""
    interrupted: bool = False

    @property
    def overhead(self) -> int:
        """Bytes of IP and UDP headers."""
        return 48 if self.address.startswith("[") else 28
