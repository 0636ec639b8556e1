"""Is the certificate good, and whose clock is wrong?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tenuto.doctor.diagnosis.evidence import CertificateSeen

__all__ = ["Clock", "Validity", "judge_clock"]

_SKEW = 90.0
"""Seconds between this machine's clock and the server's above which they are said to differ."""

_DAY = 86400.0


class Validity(StrEnum):
    GOOD = "good"
    SKEWED = "skewed"
    """The certificate is good by both clocks, which differ."""
    CLOCK_WRONG = "clock-wrong"
    """Invalid by this machine's clock, valid by the server's."""
    NOT_YET = "not-yet-valid"
    EXPIRED = "expired"
    UNTRUSTED = "untrusted"
    """For another reason than the time."""


@dataclass(frozen=True, slots=True)
class Clock:
    validity: Validity
    days_left: float
    """By this machine's clock."""
    skew: float | None
    """Seconds by which this machine's clock is ahead of the server's."""


def judge_clock(seen: CertificateSeen) -> Clock:
    left = (seen.not_after - seen.now) / _DAY
    skew = None if seen.server_date is None else seen.now - seen.server_date
    return Clock(_validity(seen, skew), left, skew)


def _validity(seen: CertificateSeen, skew: float | None) -> Validity:
    outside = not seen.not_before <= seen.now <= seen.not_after
    theirs = seen.server_date
    if outside and theirs is not None and seen.not_before <= theirs <= seen.not_after:
        return Validity.CLOCK_WRONG
    if seen.now < seen.not_before:
        return Validity.NOT_YET
    if seen.now > seen.not_after:
        return Validity.EXPIRED
    if not seen.trusted:
        return Validity.UNTRUSTED
    return Validity.SKEWED if skew is not None and abs(skew) > _SKEW else Validity.GOOD
