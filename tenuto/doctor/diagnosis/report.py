"""A diagnosis as text for people, and as a value for machines."""

from __future__ import annotations

from dataclasses import asdict
from statistics import median
from textwrap import wrap
from typing import Any

from tenuto.doctor.diagnosis.clock import judge_clock
from tenuto.doctor.diagnosis.conclusion import Diagnosis, diagnose
from tenuto.doctor.diagnosis.evidence import Evidence, Transport
from tenuto.doctor.diagnosis.findings import Weight
from tenuto.doctor.diagnosis.moment import iso, minute
from tenuto.doctor.diagnosis.nat import judge_nat
from tenuto.doctor.diagnosis.on_path import mtu_of
from tenuto.doctor.diagnosis.on_udp import best_carried, reach_of

__all__ = ["as_document", "as_text"]

_MARKS = {Weight.GOOD: "ok  ", Weight.NOTE: "note", Weight.BAD: "BAD ", Weight.YOURS: "BAD "}
_WIDTH = 92
_INDENT = "      "

Document = dict[str, Any]


def as_text(evidence: Evidence, now: float, version: str) -> str:
    """Plain text, to be sent on as it is."""
    diagnosis = diagnose(evidence)
    server = f"{evidence.host} port {evidence.port}"
    head = f"tenuto doctor {version}, {minute(now)}: {server}"
    lines = [f"{head} ({evidence.address})" if evidence.address else head]
    if evidence.others:
        lines += wrap(f"Not examined: {', '.join(evidence.others)}.", _WIDTH)
    if evidence.interrupted:
        lines.append("Interrupted: this is what was known by then.")
    lines.append("")
    for finding in diagnosis.findings:
        text = wrap(finding.says, _WIDTH - len(_INDENT))
        lines.append(f"{_MARKS[finding.weight]}  {text[0]}")
        lines += [f"{_INDENT}{line}" for line in text[1:]]
    if diagnosis.findings:
        lines.append("")
    lines += wrap(f"Tenuto will use: {diagnosis.conclusion.says}", _WIDTH)
    lines += _asks(diagnosis)
    return "\n".join(lines)


def _asks(diagnosis: Diagnosis) -> list[str]:
    lines: list[str] = []
    for ask in diagnosis.asks:
        lines += wrap(ask, _WIDTH, initial_indent="  - ", subsequent_indent="    ")
    return ["What to ask for:", *lines] if lines else []


def as_document(evidence: Evidence, now: float, version: str) -> Document:
    """The same with the figures behind it; what was not measured is null."""
    diagnosis = diagnose(evidence)
    conclusion = diagnosis.conclusion
    return {
        "tenuto": version,
        "at": iso(now),
        "host": evidence.host,
        "port": evidence.port,
        "address": evidence.address or None,
        "others": list(evidence.others),
        "interrupted": evidence.interrupted,
        "status": conclusion.status,
        "transport": conclusion.transport,
        "conclusion": conclusion.says,
        "ask": list(diagnosis.asks),
        "findings": [asdict(finding) for finding in diagnosis.findings],
        "udp": _udp(evidence),
        "mtu": _mtu(evidence),
        "nat": _nat(evidence),
        "handshakes": {
            "tcp": _times(evidence, "tcp", secured=False),
            "tls": _times(evidence, "tcp", secured=True),
            "quic": _times(evidence, "quic", secured=True),
        },
        "voice": {"quic": _voice(evidence, "quic"), "tcp": _voice(evidence, "tcp")},
        "certificate": _certificate(evidence),
    }


def _udp(evidence: Evidence) -> Document | None:
    reach = reach_of(evidence)
    if reach is None:
        return None
    return {
        "state": reach.udp.value,
        "sent": reach.sent,
        "answered": reach.answered,
        "loss": round(reach.loss, 4),
        "outage": round(reach.outage, 3),
        "reordered": round(reach.reordered, 4),
        "round_trip": _rounded(reach.rtt),
        "dies_after": reach.after or None,
        "bits_per_second": round(reach.rate) or None,
        "icmp_from": reach.by or None,
    }


def _mtu(evidence: Evidence) -> Document | None:
    found = mtu_of(evidence)
    if found is None:
        return None
    return {"bytes": found.size, "told_by": "this machine" if found.here else found.by or None}


def _nat(evidence: Evidence) -> Document | None:
    found = judge_nat(evidence.outside, evidence.silences)
    if found is None:
        return None
    return {
        "binding": found.binding.value,
        "outside": found.outside,
        "kept": found.kept or None,
        "forgotten_within": found.lost or None,
        "rebinds_within": _rounded(found.within) or None,
    }


def _times(evidence: Evidence, transport: Transport, *, secured: bool) -> Document:
    tried = [h for h in evidence.handshakes if h.transport == transport]
    times = [h.secured if secured else h.connected for h in tried]
    known = [time for time in times if time is not None]
    middle = median(known) if known else None
    return {"tried": len(tried), "succeeded": len(known), "median": _rounded(middle)}


def _voice(evidence: Evidence, transport: Transport) -> Document | None:
    carried = best_carried(evidence, transport)
    if carried is None:
        return None
    return {
        "bits_per_second": round(8 * carried.rate),
        "needed": round(8 * carried.need) or None,
        "seconds": round(carried.seconds, 3),
        "failure": carried.failure or None,
    }


def _certificate(evidence: Evidence) -> Document | None:
    seen = evidence.certificate
    if seen is None:
        return None
    clock = judge_clock(seen)
    return {
        "state": clock.validity.value,
        "not_before": iso(seen.not_before),
        "not_after": iso(seen.not_after),
        "days_left": round(clock.days_left, 3),
        "clock_ahead": _rounded(clock.skew),
        "issuer": seen.issuer,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
