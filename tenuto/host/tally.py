"""What a host counts."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Tally"]


@dataclass(slots=True)
class Tally:
    """Counters of this process since its start."""

    sessions_opened: int = 0
    sessions_refused: int = 0
    requests_repeated: int = 0
    """Requests that were answered with a session that an earlier one with their key had made."""
    keys_forgotten: int = 0
    """`Idempotency-Key`s that made room for newer ones before their time."""
    sessions_evicted: int = 0
    frames_produced: int = 0
    frames_sent: int = 0
    frames_dropped: int = 0
    """Left out for live listeners that were too slow."""
    flushes: int = 0
    listeners_attached: int = 0
    sources_failed: int = 0
