"""A moment in seconds since 1970 as people and machines write it, in UTC."""

from __future__ import annotations

__all__ = ["date", "iso", "minute", "second"]

_DAY = 86_400


def date(moment: float) -> str:
    """As 2026-03-01."""
    # Years are counted from 1 March, so that the leap day is the last of a year; 719,468 days lie
    # between 1 March of the year 0 and 1970, 146,097 make 400 years.
    era, day = divmod(int(moment // _DAY) + 719_468, 146_097)
    of_era = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * of_era + of_era // 4 - of_era // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month = month + 3 if month < 10 else month - 9
    return f"{400 * era + of_era + (month <= 2):04d}-{month:02d}-{day + 1:02d}"


def minute(moment: float) -> str:
    """As 2026-03-01 09:05 UTC."""
    return f"{date(moment)} {_clock(moment)[:5]} UTC"


def second(moment: float) -> str:
    """As 2026-03-01 09:05:07 UTC."""
    return f"{date(moment)} {_clock(moment)} UTC"


def iso(moment: float) -> str:
    """As 2026-03-01T09:05:07Z (RFC 3339)."""
    return f"{date(moment)}T{_clock(moment)}Z"


def _clock(moment: float) -> str:
    left = int(moment % _DAY)
    return f"{left // 3600:02d}:{left // 60 % 60:02d}:{left % 60:02d}"
