"""Findings about the name, the certificate, the clocks, and what the server is."""

from __future__ import annotations

from typing import assert_never

from tenuto.doctor.diagnosis.clock import Clock, Validity, judge_clock
from tenuto.doctor.diagnosis.evidence import CertificateSeen, Evidence
from tenuto.doctor.diagnosis.findings import Code, Finding, Weight
from tenuto.doctor.diagnosis.moment import date, minute, second

__all__ = ["certificate_findings", "server_findings"]

_SOON = 2.0
"""Days before a certificate ends in which it is said; development ones last 13 in all."""


def certificate_findings(evidence: Evidence) -> list[Finding]:
    seen = evidence.certificate
    if seen is None:
        return []
    clock = judge_clock(seen)
    days = f"{date(seen.not_before)} to {minute(seen.not_after)}"
    here = second(seen.now)
    match clock.validity:
        case Validity.CLOCK_WRONG:
            says = (
                f"This machine's clock ({here}) is {_apart(clock)} the server's, and outside "
                f"the certificate ({days}), which is good by the server's clock."
            )
            ask = (
                "Set this machine's clock, if that time is wrong; else the server's is, and its "
                "certificate must be renewed."
            )
            return [Finding(Code.CLOCK_WRONG, Weight.YOURS, says, ask)]
        case Validity.NOT_YET:
            says = f"The certificate ({days}) is not valid yet by this machine's clock ({here})."
            ask = "Set the clock, if that time is wrong; else the server's certificate."
            return [Finding(Code.CERTIFICATE_NOT_YET, Weight.YOURS, says, ask)]
        case Validity.EXPIRED:
            says = f"The certificate ({days}) has expired by this machine's clock ({here})."
            ask = "Renew it on the server, if that time is right; else set the clock."
            return [Finding(Code.CERTIFICATE_EXPIRED, Weight.YOURS, says, ask)]
        case Validity.UNTRUSTED:
            says = f"The certificate (by {seen.issuer}) is not trusted here: {seen.refusal}."
            proxy = f"If {seen.issuer} did not issue it for this server, a proxy in the way did."
            ask = f"{_upper(seen.remedy)} {proxy}".strip()
            return [Finding(Code.CERTIFICATE_UNTRUSTED, Weight.YOURS, says, ask)]
        case Validity.SKEWED:
            says = f"This machine's clock is {_apart(clock)} the server's."
            differs = Finding(Code.CLOCK_DIFFERS, Weight.NOTE, says, "Have both clocks set by NTP.")
            return [_good(seen, clock), differs]
        case Validity.GOOD:
            return [_good(seen, clock)]
        case _:
            assert_never(clock.validity)


def _good(seen: CertificateSeen, clock: Clock) -> Finding:
    clocks = "" if clock.skew is None else "; both clocks agree" if abs(clock.skew) < 5 else ""
    says = f"The certificate (by {seen.issuer}) is good for {clock.days_left:.1f} days{clocks}."
    soon = clock.days_left < _SOON
    ask = "Renew it on the server." if soon else ""
    return Finding(Code.CERTIFICATE_GOOD, Weight.NOTE if soon else Weight.GOOD, says, ask)


def _apart(clock: Clock) -> str:
    skew = clock.skew or 0.0
    apart = abs(skew)
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("min", 60.0)):
        if apart >= 2 * size:
            return f"{apart / size:.0f} {unit} {'ahead of' if skew > 0 else 'behind'}"
    return f"{apart:.0f} s {'ahead of' if skew > 0 else 'behind'}"


def _upper(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def server_findings(evidence: Evidence) -> list[Finding]:
    if evidence.no_name:
        ask = "Check the spelling, and that this machine has a network."
        return [Finding(Code.NO_NAME, Weight.YOURS, f"{_upper(evidence.no_name)}", ask)]
    server = evidence.server
    if server is None:
        return []
    if not server.is_tenuto:
        says = (
            f"It is no Tenuto server ({server.why_not}): what it sees of this machine, and "
            f"whether a voice keeps pace, cannot be measured."
        )
        return [Finding(Code.NOT_TENUTO, Weight.NOTE, says)]
    if server.offers_quic is False:
        says = "The server says that it offers this client no QUIC."
        ask = "If that is not meant, look at the server's option --quic."
        return [Finding(Code.QUIC_NOT_OFFERED, Weight.NOTE, says, ask)]
    if server.quic_port not in (None, evidence.port):
        says = f"The server says that its QUIC is on UDP port {server.quic_port}."
        ask = f"Examine that port: tenuto doctor {evidence.host}:{server.quic_port}"
        return [Finding(Code.QUIC_NOT_OFFERED, Weight.NOTE, says, ask)]
    return []
