"""Findings about handshakes, the largest packet and NAT."""

from __future__ import annotations

from statistics import median
from typing import assert_never

from tenuto.doctor.diagnosis.evidence import Evidence, Handshake
from tenuto.doctor.diagnosis.findings import Code, Finding, Weight, milliseconds
from tenuto.doctor.diagnosis.mtu import ETHERNET, PathMtu, judge_mtu
from tenuto.doctor.diagnosis.nat import Binding, Nat, judge_nat
from tenuto.doctor.diagnosis.on_udp import least_packet, reach_of
from tenuto.doctor.diagnosis.reach import SILENT, Udp

__all__ = ["handshake_findings", "mtu_findings", "mtu_of", "nat_findings"]

_SHORT = 30.0
"""Seconds of silence that a binding should survive at the very least."""


_SILENCE = ("timeout", "refused", "unreachable")
"""Kinds of failure where nothing of QUIC came back."""


def handshake_findings(evidence: Evidence) -> list[Finding]:
    tcp = [h for h in evidence.handshakes if h.transport == "tcp"]
    quic = [h for h in evidence.handshakes if h.transport == "quic"]
    return [*_tcp(tcp, quic), *_quic(quic, evidence)]


def _tcp(tried: list[Handshake], quic: list[Handshake]) -> list[Finding]:
    if not tried:
        return []
    connected = [h.connected for h in tried if h.connected is not None]
    secured = [h.secured for h in tried if h.secured is not None]
    if not connected:
        refused = tried[-1].kind == "refused"
        code = Code.TCP_REFUSED if refused else Code.TCP_FAILS
        says = f"TCP does not connect: {tried[-1].failure}."
        if any(h.secured is not None for h in quic):
            ask = "Let TCP to that port pass, too: it is the way out where UDP fails."
            return [Finding(code, Weight.NOTE, says, ask)]
        return [Finding(code, Weight.BAD, says, "Is the server running, and on this port?")]
    if not secured:
        says = (
            f"TCP connects after {milliseconds(median(connected))}, "
            f"but TLS does not follow: {tried[-1].failure}."
        )
        ask = {
            "protocol": "Is it a Tenuto server, and on this port?",
            "timeout": "If small packets pass there and large ones do not, have the MSS of TCP "
            "clamped to the path.",
        }.get(tried[-1].kind, "Look for a firewall or a proxy that takes TLS apart.")
        return [Finding(Code.TLS_FAILS, Weight.BAD, says, ask)]
    says = f"TCP connects after {milliseconds(median(connected))}, TLS is ready after"
    return [_ready(Code.TCP_READY, says, tried)]


def _ready(code: Code, says: str, tried: list[Handshake]) -> Finding:
    secured = [h.secured for h in tried if h.secured is not None]
    says = f"{says} {milliseconds(median(secured))} (the median of {len(secured)})."
    failures = [h.failure for h in tried if h.secured is None]
    if not failures:
        return Finding(code, Weight.GOOD, says)
    says = f"{says} {len(failures)} of {len(tried)} attempts failed: {failures[-1]}."
    return Finding(code, Weight.NOTE, says)


def _quic(tried: list[Handshake], evidence: Evidence) -> list[Finding]:
    if any(h.secured is not None for h in tried):
        return [_ready(Code.QUIC_READY, "QUIC is ready after", tried)]
    if not tried:
        return []
    if tried[-1].kind == "untrusted" and evidence.certificate is None:
        says = f"{tried[-1].failure[:1].upper()}{tried[-1].failure[1:]}."
        ask = "If the server is yours, trust its CA: --ca certs/dev/ca.pem."
        return [Finding(Code.CERTIFICATE_UNTRUSTED, Weight.YOURS, says, ask)]
    reach = reach_of(evidence)
    if reach is not None and reach.udp in SILENT and tried[-1].kind in _SILENCE:
        return []  # That is said already.
    passes = reach is not None and reach.udp is Udp.OPEN
    says = f"QUIC does not connect{', though UDP passes' if passes else ''}: {tried[-1].failure}."
    if passes and tried[-1].kind == "timeout":
        says += " Packets as large as QUIC's may not pass towards this machine."
    weight = Weight.BAD if passes else Weight.NOTE
    return [Finding(Code.QUIC_FAILS, weight, says)]


def mtu_of(evidence: Evidence) -> PathMtu | None:
    reach = reach_of(evidence)
    if evidence.mtu is None or reach is None:
        return None
    return judge_mtu(evidence.mtu, least_packet(evidence), reach.loss)


def mtu_findings(evidence: Evidence) -> list[Finding]:
    if evidence.mtu is None:
        return []
    found = mtu_of(evidence)
    if found is None:
        says = "The largest packet that passes could not be told: too many others were lost."
        return [Finding(Code.MTU_UNKNOWN, Weight.NOTE, says)]
    if not found.limited:
        says = f"Packets of {ETHERNET} bytes pass towards the server."
        return [Finding(Code.MTU_FULL, Weight.GOOD, says)]
    if found.told:
        who = "this machine's interface" if found.here else f"ICMP from {found.by}"
        says = f"Packets of up to {found.size} bytes pass towards the server, as {who} says."
        return [Finding(Code.MTU_SMALL, Weight.NOTE, says)]
    says = (
        f"Packets of more than {found.size} bytes vanish towards the server, and no ICMP says "
        f"so: a black hole. QUIC keeps below it, TCP may hang."
    )
    ask = (
        "Let ICMP 'fragmentation needed' (ICMPv6 'packet too big') pass, or have the MSS of TCP "
        "clamped to the path."
    )
    return [Finding(Code.MTU_BLACK_HOLE, Weight.NOTE, says, ask)]


def nat_findings(evidence: Evidence) -> list[Finding]:
    found = judge_nat(evidence.outside, evidence.silences)
    if found is None:
        return []
    match found.binding:
        case Binding.NONE:
            says = f"No NAT: the server sees this machine as {found.outside}, as it sees itself."
            return [Finding(Code.NAT_NONE, Weight.GOOD, says)]
        case Binding.REBINDS:
            return [_rebinds(found)]
        case Binding.KEPT:
            says = (
                f"A NAT (outside: {found.outside}) keeps a silent flow for {found.kept:g} s "
                f"at least."
            )
            return [Finding(Code.NAT_KEEPS, Weight.GOOD, says)]
        case Binding.FORGOTTEN:
            return [_forgets(found)]
        case Binding.UNCLEAR:
            return [_unclear(found, evidence)]
        case _:
            assert_never(found.binding)


def _rebinds(found: Nat) -> Finding:
    return Finding(
        Code.NAT_REBINDS,
        Weight.NOTE,
        f"A NAT rebinds: a flow that was never silent had another port outside within "
        f"{found.within:.1f} s. QUIC follows it; TCP is cut, if its bindings are treated alike.",
        "Ask for a NAT that keeps the binding of a flow in use (RFC 4787, REQ-5).",
    )


def _forgets(found: Nat) -> Finding:
    kept = "no shorter one was tried"
    if found.kept:
        kept = f"after {found.kept:g} s it was still known"
    ask = "Have UDP bindings kept for 120 s at least (RFC 4787, REQ-5)."
    return Finding(
        Code.NAT_FORGETS,
        Weight.NOTE,
        f"A NAT (outside: {found.outside}) forgets a flow within {found.lost:g} s of silence; "
        f"{kept}. While audio is due Tenuto is never silent for that long; a paused listener "
        f"has to be heard of before the server can reach it.",
        ask if found.lost <= _SHORT + 5 else "",
    )


def _unclear(found: Nat, evidence: Evidence) -> Finding:
    if found.kept or found.lost:
        says = (
            f"A NAT (outside: {found.outside}) forgot a flow within {found.lost:g} s and kept "
            f"another for {found.kept:g} s: no one time-out explains it."
        )
        return Finding(Code.NAT_UNCLEAR, Weight.NOTE, says)
    tried = "" if evidence.silences or not evidence.nat_limit else " No silence was completed."
    says = f"There is a NAT (outside: {found.outside}); how long it remembers is not known.{tried}"
    return Finding(Code.NAT_SEEN, Weight.NOTE, says)
