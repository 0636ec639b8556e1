"""What Tenuto will do on this network, why, and what to ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tenuto.doctor.diagnosis.evidence import Evidence
from tenuto.doctor.diagnosis.findings import Code, Finding, Weight
from tenuto.doctor.diagnosis.on_path import handshake_findings, mtu_findings, nat_findings
from tenuto.doctor.diagnosis.on_server import certificate_findings, server_findings
from tenuto.doctor.diagnosis.on_udp import (
    KEEPS_PACE,
    best_carried,
    reach_of,
    udp_findings,
    voice_findings,
)
from tenuto.doctor.diagnosis.reach import Udp

__all__ = ["Conclusion", "Diagnosis", "diagnose"]

Verdict = Literal["quic", "tcp", "none", "unknown"]


@dataclass(frozen=True, slots=True)
class Conclusion:
    """`status` is the command's: 0 QUIC works well, 1 something hinders it, 2 it is for the user
    to set right.
    """

    transport: Verdict
    says: str
    status: int


@dataclass(frozen=True, slots=True)
class Diagnosis:
    conclusion: Conclusion
    findings: tuple[Finding, ...]

    @property
    def asks(self) -> tuple[str, ...]:
        """What to ask for, the weightiest first, each once."""
        order = (Weight.YOURS, Weight.BAD, Weight.NOTE)
        asks = [f.ask for weight in order for f in self.findings if f.weight is weight and f.ask]
        return tuple(dict.fromkeys(asks))


def diagnose(evidence: Evidence) -> Diagnosis:
    """All findings, in the order in which a reader wants them, and what follows."""
    findings = (
        *server_findings(evidence),
        *certificate_findings(evidence),
        *udp_findings(evidence),
        *handshake_findings(evidence),
        *voice_findings(evidence),
        *mtu_findings(evidence),
        *nat_findings(evidence),
        *(Finding(Code.LEFT_OUT, Weight.NOTE, why) for why in evidence.skipped),
    )
    return Diagnosis(_conclude(evidence, {finding.code for finding in findings}), findings)


_BROKEN = {
    Code.NO_NAME,
    Code.CLOCK_WRONG,
    Code.CERTIFICATE_EXPIRED,
    Code.CERTIFICATE_NOT_YET,
    Code.CERTIFICATE_UNTRUSTED,
}

_WAITS = "Tenuto tries QUIC for 2 s and then takes TCP; --transport tcp saves the wait."

_TO_TCP = {
    Udp.BLOCKED: f"TCP, because UDP is blocked. {_WAITS}",
    Udp.REJECTED: "TCP, because UDP is rejected. Tenuto is told at once and takes TCP.",
    Udp.PROHIBITED: "TCP, because UDP is prohibited. Tenuto is told at once and takes TCP.",
    Udp.UNREACHABLE: "TCP, because UDP finds no way. Tenuto is told at once and takes TCP.",
    Udp.FIRST_PACKET: f"TCP, because only the first packet of a UDP flow passes. {_WAITS}",
    Udp.DIES: "TCP, because a UDP flow dies. QUIC may connect and is cut soon after: use "
    "--transport tcp.",
    Udp.THROTTLED: "TCP, because UDP is throttled below what a voice needs. QUIC may connect and "
    "starve: use --transport tcp.",
    Udp.SMALL: f"TCP, because QUIC needs larger packets than pass. {_WAITS}",
    Udp.FOREIGN: f"TCP, because what answers on the UDP port is not QUIC. {_WAITS}",
    Udp.OPEN: f"TCP, because QUIC does not connect. {_WAITS}",
}


def _conclude(evidence: Evidence, codes: set[Code]) -> Conclusion:
    if codes & _BROKEN:
        return Conclusion("none", "Nothing, until what is named above is set right.", 2)
    reach = reach_of(evidence)
    if reach is None:
        return Conclusion("unknown", "Too little was examined to say.", 1)
    if reach.udp is Udp.OPEN and Code.QUIC_READY in codes:
        return _over_quic(evidence, codes)
    if Code.TCP_READY in codes:
        return Conclusion("tcp", _TO_TCP[reach.udp], 1)
    if reach.udp is Udp.OPEN and not any(h.transport == "quic" for h in evidence.handshakes):
        return Conclusion("unknown", "UDP passes; QUIC was not tried.", 1)
    if Code.QUIC_READY in codes:
        return Conclusion("none", "Little: UDP does not carry a voice, and TCP does not pass.", 1)
    return Conclusion("none", "Nothing: neither QUIC nor TLS over TCP comes about.", 1)


def _over_quic(evidence: Evidence, codes: set[Code]) -> Conclusion:
    quic, tcp = best_carried(evidence, "quic"), best_carried(evidence, "tcp")
    fallback = "" if Code.TCP_READY in codes else " There is no TCP to fall back to."
    if quic is not None and quic.need and quic.share < KEEPS_PACE:
        cause = "the line, or the server, is slow"
        if Code.UDP_LOSSY in codes:
            cause = "packets are lost"
        elif Code.UDP_REORDERED in codes:
            cause = "packets overtake one another"
        elif tcp is not None and tcp.share >= KEEPS_PACE:
            cause = "UDP is slower here than TCP"
        says = f"QUIC, and a voice at 16 kHz still falls behind: {cause}.{fallback}"
        return Conclusion("quic", says, 1)
    tenuto = evidence.server is not None and evidence.server.is_tenuto
    if tenuto and quic is None:
        says = f"QUIC, which connects; whether a voice keeps pace was not seen.{fallback}"
        return Conclusion("quic", says, 1)
    works = "over which a voice keeps pace, though packets are lost"
    if Code.UDP_LOSSY not in codes:
        works = "which works well here"
    elif not tenuto:
        works = "though packets are lost"
    return Conclusion("quic", f"QUIC, {works}.{fallback}", 0)
