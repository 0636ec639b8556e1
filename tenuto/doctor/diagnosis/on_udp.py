"""Findings about UDP, and about what a stream of voice came to over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tenuto.doctor.diagnosis.evidence import Carried, Evidence, Handshake, Transport
from tenuto.doctor.diagnosis.findings import Code, Finding, Weight, bits, milliseconds
from tenuto.doctor.diagnosis.reach import Reach, Udp, judge_reach

__all__ = ["KEEPS_PACE", "best_carried", "reach_of", "udp_findings", "voice_findings"]

KEEPS_PACE = 0.85
"""The share of its rate at which a stream is taken to keep pace, in the seconds it is looked at."""

_STARVED = 0.7
_LOSSY = 0.05
_MUCH_LOSS = 0.1
"""Losses above this explain a slow QUIC by themselves."""


def best_carried(evidence: Evidence, transport: Transport) -> Carried | None:
    """The best of several looks: one may have met an outage."""
    seen = [c for c in evidence.carried if c.transport == transport]
    return max(seen, key=lambda carried: carried.rate, default=None)


def reach_of(evidence: Evidence) -> Reach | None:
    """What UDP does, judged beside TCP; None while it was not examined."""
    if evidence.udp is None:
        return None
    tcp, quic = best_carried(evidence, "tcp"), best_carried(evidence, "quic")
    reach = judge_reach(evidence.udp, None if tcp is None or not tcp.size else 8 * tcp.rate)
    if reach.udp is not Udp.OPEN or tcp is None or quic is None or not quic.need:
        return reach
    starved = quic.share < _STARVED and tcp.share >= KEEPS_PACE and tcp.rate >= 2 * quic.rate
    if starved and reach.loss < _MUCH_LOSS and not reach.outage:
        return replace(reach, udp=Udp.THROTTLED, rate=8 * quic.rate)
    return reach


def udp_findings(evidence: Evidence) -> list[Finding]:
    reach = reach_of(evidence)
    if reach is None:
        return []
    if reach.udp is Udp.OPEN:
        return _open(reach)
    return [_hindered(reach, evidence)]


def _open(reach: Reach) -> list[Finding]:
    rtt = milliseconds(reach.rtt or 0.0)
    found = [
        Finding(
            Code.UDP_OPEN,
            Weight.GOOD,
            f"UDP passes: {reach.answered} of {reach.sent} probes were answered, "
            f"the median after {rtt}.",
        )
    ]
    if reach.loss >= _LOSSY:
        found.append(
            Finding(
                Code.UDP_LOSSY,
                Weight.NOTE,
                f"Packets are lost, whatever the rate: about {reach.loss:.0%} of round trips, "
                f"by {reach.sent} probes.",
                "Look for a weak radio link or an overfull line; a cable tells them apart.",
            )
        )
    if reach.outage:
        found.append(
            Finding(
                Code.UDP_OUTAGE,
                Weight.NOTE,
                f"The path was gone for about {reach.outage:.1f} s and came back.",
                "Run doctor again; a radio that changes cells does this.",
            )
        )
    return found


_CODES = {
    Udp.BLOCKED: Code.UDP_BLOCKED,
    Udp.REJECTED: Code.UDP_REJECTED,
    Udp.PROHIBITED: Code.UDP_PROHIBITED,
    Udp.UNREACHABLE: Code.UDP_UNREACHABLE,
    Udp.THROTTLED: Code.UDP_THROTTLED,
    Udp.FIRST_PACKET: Code.UDP_FIRST_PACKET,
    Udp.DIES: Code.UDP_DIES,
}


def _hindered(reach: Reach, evidence: Evidence) -> Finding:
    port = f"UDP port {evidence.port}"
    where = f"UDP to {evidence.address}"
    by = reach.by or "an unnamed address"
    beside = _beside_tcp(evidence) if reach.udp is Udp.THROTTLED else ""
    if not beside and _tcp_connects(evidence):
        beside = "TCP to the same port passes."
    says = {
        Udp.BLOCKED: f"UDP is blocked: none of {reach.sent} probes was answered, and nobody "
        f"said why.",
        Udp.REJECTED: f"UDP is rejected: {by} answers with ICMP port unreachable. A firewall "
        f"does this, and so does a server that has no QUIC on {port}.",
        Udp.PROHIBITED: f"UDP is prohibited: {by} answers with ICMP administratively "
        f"prohibited. A firewall says no.",
        Udp.UNREACHABLE: f"UDP has no way there: {by} answers with ICMP unreachable.",
        Udp.THROTTLED: f"UDP is throttled: about {bits(reach.rate)} pass, and a voice at "
        f"16 kHz needs 300 kbit/s.",
        Udp.FIRST_PACKET: f"Of each UDP flow the first packet passes, and no other: "
        f"{reach.answered} of {reach.sent} probes were answered.",
        Udp.DIES: f"A UDP flow dies after about {reach.after} packets, as a new one beside it "
        f"lives as long again.",
    }[reach.udp]
    ask = {
        Udp.THROTTLED: f"Let {where} pass at 1 Mbit/s a listener or more, both ways.",
        Udp.DIES: f"Let {where} pass for as long as a flow lasts, both ways.",
        Udp.FIRST_PACKET: f"Let {where} pass for as long as a flow lasts, both ways.",
    }.get(reach.udp, f"Let {where} pass, both ways.")
    return Finding(_CODES[reach.udp], Weight.BAD, f"{says} {beside}".strip(), ask)


def _beside_tcp(evidence: Evidence) -> str:
    tcp = best_carried(evidence, "tcp")
    if tcp is None or not tcp.size:
        return ""
    return f"TCP carried {bits(8 * tcp.rate)} over the same path."


def _tcp_connects(evidence: Evidence) -> bool:
    return any(handshake.connected is not None for handshake in _tcp(evidence))


def _tcp(evidence: Evidence) -> Sequence[Handshake]:
    return [h for h in evidence.handshakes if h.transport == "tcp"]


def voice_findings(evidence: Evidence) -> list[Finding]:
    """Whether a stream at the rate of a voice kept pace, over each transport."""
    found = []
    for transport, name in (("quic", "QUIC"), ("tcp", "TCP")):
        carried = best_carried(evidence, "quic" if transport == "quic" else "tcp")
        if carried is None or not carried.need:
            continue
        heard = f"in {carried.seconds:.1f} s, {bits(8 * carried.rate)} of {bits(8 * carried.need)}"
        if carried.share >= KEEPS_PACE:
            says = f"A voice at 16 kHz keeps pace over {name} ({heard})."
            found.append(Finding(Code.VOICE_FLOWS, Weight.GOOD, says))
            continue
        why = f": {carried.failure}" if carried.failure else ""
        says = f"A voice at 16 kHz falls behind over {name} ({heard}){why}."
        ask = "Ask for a lower rate, such as rate=8000, if the line itself is this slow."
        found.append(Finding(Code.VOICE_LATE, Weight.NOTE, says, ask))
    return found
