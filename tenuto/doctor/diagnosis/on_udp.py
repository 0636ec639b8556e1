"""Findings about UDP, and about what a stream of voice came to over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tenuto.doctor.diagnosis.evidence import Carried, Evidence, Handshake, Transport
from tenuto.doctor.diagnosis.findings import Code, Finding, Weight, bits, milliseconds
from tenuto.doctor.diagnosis.reach import SILENT, Reach, Udp, judge_reach

__all__ = [
    "KEEPS_PACE",
    "best_carried",
    "least_packet",
    "reach_of",
    "udp_findings",
    "voice_findings",
]

_LEAST_PAYLOAD = 1200
"""Bytes of the smallest datagram that QUIC must be able to send (RFC 9000 section 14)."""

KEEPS_PACE = 0.85
"""The share of its rate at which a stream is taken to keep pace, in the seconds it is looked at."""

_STARVED = 0.7
_LOSSY = 0.05
_REORDERED = 0.05
_MUCH_LOSS = 0.1
"""Losses above this explain a slow QUIC by themselves."""


def least_packet(evidence: Evidence) -> int:
    """The least that QUIC needs, IP header included."""
    return _LEAST_PAYLOAD + evidence.overhead


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
    if reach.udp in SILENT:
        return _beside_quic(reach, evidence)
    if quic is None or not quic.need:
        return reach
    if reach.udp is Udp.THROTTLED and quic.share >= KEEPS_PACE:
        # Towards the server only, where a listener has little to say.
        return replace(reach, udp=Udp.OPEN)
    if reach.udp is not Udp.OPEN or tcp is None:
        return reach
    starved = quic.share < _STARVED and tcp.share >= KEEPS_PACE
    explained = reach.loss >= _MUCH_LOSS or reach.outage or reach.reordered >= _REORDERED
    if starved and not explained:
        return replace(reach, udp=Udp.THROTTLED, rate=8 * quic.rate)
    return reach


def _beside_quic(reach: Reach, evidence: Evidence) -> Reach:
    """What silence means beside a handshake that succeeded, and large packets of TCP that hang."""
    if any(h.transport == "quic" and h.secured is not None for h in evidence.handshakes):
        return replace(reach, udp=Udp.OPEN, loss=0.0)
    if reach.udp is Udp.BLOCKED and evidence.large_hangs:
        return replace(reach, udp=Udp.SMALL)
    return reach


def udp_findings(evidence: Evidence) -> list[Finding]:
    reach = reach_of(evidence)
    if reach is None:
        return []
    if reach.udp is Udp.OPEN:
        return _open(reach)
    return [_hindered(reach, evidence)]


def _open(reach: Reach) -> list[Finding]:
    if not reach.answered and (reach.largest or reach.by):
        says = f"{_pass_only(reach)} QUIC connects all the same, in fragments: a voice may suffer."
        ask = "Raise the MTU of the tunnel, so that packets of 1,228 bytes and more pass whole."
        return [Finding(Code.UDP_OPEN, Weight.NOTE, says, ask)]
    if not reach.answered:
        says = (
            f"UDP passes, for QUIC connects. None of {reach.sent} probes was answered: the server, "
            f"or a firewall before it, is silent about an unknown version of QUIC. Loss and the "
            f"largest packet cannot be measured so."
        )
        return [Finding(Code.UDP_OPEN, Weight.NOTE, says)]
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
        found.append(_lossy(reach))
    if reach.reordered >= _REORDERED:
        says = f"Packets overtake one another ({reach.reordered:.0%}), which slows QUIC down."
        found.append(Finding(Code.UDP_REORDERED, Weight.NOTE, says))
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


def _lossy(reach: Reach) -> Finding:
    share = f"about {reach.loss:.0%} of round trips"
    if reach.rate:
        return Finding(
            Code.UDP_LOSSY,
            Weight.NOTE,
            f"UDP towards the server has about {bits(reach.rate)}: of what is sent faster, {share} "
            f"fail. A listener sends less.",
        )
    slowly = ", also of what is sent slowly" if reach.any_rate else ""
    return Finding(
        Code.UDP_LOSSY,
        Weight.NOTE,
        f"Packets are lost: {share}{slowly}, by {reach.sent} probes.",
        "Look for a weak radio link or an overfull line; a cable tells them apart.",
    )


_CODES = {
    Udp.BLOCKED: Code.UDP_BLOCKED,
    Udp.REJECTED: Code.UDP_REJECTED,
    Udp.PROHIBITED: Code.UDP_PROHIBITED,
    Udp.UNREACHABLE: Code.UDP_UNREACHABLE,
    Udp.THROTTLED: Code.UDP_THROTTLED,
    Udp.FIRST_PACKET: Code.UDP_FIRST_PACKET,
    Udp.DIES: Code.UDP_DIES,
    Udp.SMALL: Code.UDP_SMALL,
    Udp.FOREIGN: Code.UDP_FOREIGN,
}


def _hindered(reach: Reach, evidence: Evidence) -> Finding:
    port = f"UDP port {evidence.port}"
    where = f"UDP to {evidence.address}"
    by = reach.by or "this machine, or one that it does not name,"
    beside = _beside_tcp(evidence) if reach.udp is Udp.THROTTLED else ""
    if not beside and _tcp_connects(evidence):
        beside = "TCP to the same port passes."
    says = {
        Udp.BLOCKED: f"UDP is blocked: none of {reach.sent} probes was answered, and nobody "
        f"said why. (Or no packet of {least_packet(evidence)} bytes passes, which QUIC needs.)",
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
        Udp.SMALL: _small(reach, evidence),
        Udp.FOREIGN: f"Something answers on {port}, and it is not QUIC: another service is there, "
        f"or in the way.",
    }[reach.udp]
    if reach.udp is Udp.REJECTED and evidence.server and evidence.server.offers_quic is False:
        return Finding(_CODES[reach.udp], Weight.BAD, f"{says} {beside}".strip())
    ask = {
        Udp.THROTTLED: f"Let {where} pass at 1 Mbit/s a listener or more, both ways.",
        Udp.DIES: f"Let {where} pass for as long as a flow lasts, both ways.",
        Udp.FIRST_PACKET: f"Let {where} pass for as long as a flow lasts, both ways.",
        Udp.SMALL: f"Let packets of {least_packet(evidence)} bytes and more pass, better of 1,500: "
        f"raise the MTU of the tunnel.",
        Udp.FOREIGN: f"Find out what answers on {port} there, and have it let QUIC through.",
    }.get(reach.udp, f"Let {where} pass, both ways.")
    return Finding(_CODES[reach.udp], Weight.BAD, f"{says} {beside}".strip(), ask)


def _small(reach: Reach, evidence: Evidence) -> str:
    least = least_packet(evidence)
    if reach.largest or reach.by:
        return f"{_pass_only(reach)} QUIC needs {least}."
    return (
        f"Packets of {least} bytes vanish, over UDP and over TCP, and no ICMP says so: a black "
        f"hole. QUIC is impossible with less, and TCP may hang."
    )


def _pass_only(reach: Reach) -> str:
    up_to = f"up to {reach.largest}" if reach.largest else "less than 1,200"
    who = f"ICMP from {reach.by}" if reach.by else "this machine's interface"
    return f"Only packets of {up_to} bytes pass towards the server, as {who} says."


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
        if not carried.size:
            says = f"A voice at 16 kHz does not begin over {name}{why}."
            found.append(Finding(Code.VOICE_LATE, Weight.NOTE, says))
            continue
        says = f"A voice at 16 kHz falls behind over {name} ({heard}){why}."
        ask = "Ask for a lower rate, such as rate=8000, if the line itself is this slow."
        found.append(Finding(Code.VOICE_LATE, Weight.NOTE, says, ask))
    return found
