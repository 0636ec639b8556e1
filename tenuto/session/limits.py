"""The bounds of a session, in seconds and frames."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_LEAD", "LIVE_LEAD", "LIVE_SLACK", "MAX_LEAD", "MIN_LEAD", "SessionLimits"]

DEFAULT_LEAD = 2.0
"""Seconds ahead of real time that a `gapless` listener is sent when it declares nothing."""

LIVE_LEAD = 0.200
"""The same for a live source, which is never far ahead of anybody."""

LIVE_SLACK = 0.500
"""Seconds beyond its lead by which a `live` listener may be behind the newest frame."""

MIN_LEAD = 0.100
"""The least lead: a chunk of the TCP door, and more than a late tick."""

MAX_LEAD = 30.0
"""Seconds of lead a listener may declare; `max` means unpaced."""


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Times in seconds; docs/server-behaviour.md says what happens at each."""

    high_watermark: float = 0.400
    low_watermark: float = 0.200
    replay: float = 10.0
    """Kept behind the frontier, beyond the largest declared lead."""
    unattached: float = 30.0
    """Life of a session that no listener ever attached to."""
    retention: float = 300.0
    """Life after the last listener left."""
    paused: float = 1800.0
    """Life of a paused session."""
    max_age: float = 6 * 3600.0
    refresh: float = 1.0
    """Progress reports lengthen a life at most once in so long."""
    max_listeners: int = 64
    catch_up: int = 10
    """How many times real time a paced listener is sent while it is short of its lead."""
