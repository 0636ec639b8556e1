"""Time inside the buffer: whole microseconds, so that no rounding of floats decides a tie."""

from __future__ import annotations

__all__ = ["FRAME_TICKS", "TICKS_PER_SECOND", "seconds", "ticks"]

TICKS_PER_SECOND = 1_000_000
FRAME_TICKS = 20_000


def ticks(time: float) -> int:
    """Seconds to the nearest microsecond, halves to the even one."""
    return round(time * TICKS_PER_SECOND)


def seconds(time: int) -> float:
    return time / TICKS_PER_SECOND
