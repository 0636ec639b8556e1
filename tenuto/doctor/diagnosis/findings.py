"""What a diagnosis consists of: findings, each in words that can be forwarded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Code", "Finding", "Weight", "bits", "milliseconds"]


class Weight(StrEnum):
    GOOD = "good"
    NOTE = "note"
    """Worth knowing; voice goes on."""
    BAD = "bad"
    """It hinders Tenuto."""
    YOURS = "yours"
    """Nothing works before it is set right on this machine or on the server."""


class Code(StrEnum):
    """One for each thing that can be found; docs/doctor.md says what to do about it."""

    NO_NAME = "no-name"
    UDP_OPEN = "udp-open"
    UDP_LOSSY = "udp-lossy"
    UDP_REORDERED = "udp-reordered"
    UDP_OUTAGE = "udp-outage"
    UDP_BLOCKED = "udp-blocked"
    UDP_REJECTED = "udp-rejected"
    UDP_PROHIBITED = "udp-prohibited"
    UDP_UNREACHABLE = "udp-unreachable"
    UDP_THROTTLED = "udp-throttled"
    UDP_FIRST_PACKET = "udp-first-packet-only"
    UDP_DIES = "udp-flow-dies"
    UDP_SMALL = "udp-small-packets-only"
    UDP_FOREIGN = "udp-no-quic"
    QUIC_READY = "quic-ready"
    QUIC_FAILS = "quic-fails"
    QUIC_NOT_OFFERED = "quic-not-offered"
    TCP_READY = "tcp-ready"
    TCP_REFUSED = "tcp-refused"
    TCP_FAILS = "tcp-fails"
    TLS_FAILS = "tls-fails"
    VOICE_FLOWS = "voice-flows"
    VOICE_LATE = "voice-late"
    MTU_FULL = "mtu-full"
    MTU_SMALL = "mtu-small"
    MTU_BLACK_HOLE = "mtu-black-hole"
    MTU_UNKNOWN = "mtu-unknown"
    NAT_NONE = "nat-none"
    NAT_SEEN = "nat-seen"
    NAT_KEEPS = "nat-keeps"
    NAT_FORGETS = "nat-forgets"
    NAT_REBINDS = "nat-rebinds"
    NAT_UNCLEAR = "nat-unclear"
    CERTIFICATE_GOOD = "certificate-good"
    CERTIFICATE_EXPIRED = "certificate-expired"
    CERTIFICATE_NOT_YET = "certificate-not-yet-valid"
    CERTIFICATE_UNTRUSTED = "certificate-untrusted"
    CLOCK_WRONG = "clock-wrong"
    CLOCK_DIFFERS = "clock-differs"
    NOT_TENUTO = "not-tenuto"
    LEFT_OUT = "left-out"


@dataclass(frozen=True, slots=True)
class Finding:
    """`says` what was seen and what it means; `ask` what somebody should do, if anything."""

    code: Code
    weight: Weight
    says: str
    ask: str = ""


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"


def bits(rate: float) -> str:
    """A rate in bits a second, for people."""
    return f"{rate / 1000:.0f} kbit/s" if rate < 1e6 else f"{rate / 1e6:.1f} Mbit/s"
