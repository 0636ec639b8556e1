"""What a player is doing, as values to plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tenuto.playout.jitter import PlayoutMode

__all__ = ["PlayerState", "PlayoutSnapshot"]

PlayerState = Literal["filling", "playing", "waiting", "ended"]
"""`filling` before the first sound, after a flush and in a pause; `waiting` after an underrun."""


@dataclass(frozen=True, slots=True)
class PlayoutSnapshot:
    """Times in seconds, frames as counted by `PlayoutCounters`."""

    now: float
    mode: PlayoutMode
    state: PlayerState
    delay: float
    target: float
    base: float | None
    quantile: float
    depth: int
    received: int
    played: int
    duplicates: int
    late: int
    overflowed: int
    skipped: int
    concealed: int
    flushed: int
    underruns: int
    waited: float
    concealed_samples: int
    shrunk_samples: int
    stretched_samples: int
    histogram: tuple[float, ...] | None
    """Shares of the delays in cells of 5 ms, if asked for."""
