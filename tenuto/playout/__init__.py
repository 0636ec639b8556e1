"""From frames as they arrive to frames as they are played. Pure."""

from tenuto.playout.jitter import JitterBuffer, PlayoutCounters
from tenuto.playout.outcome import Concealed, Ended, Outcome, Played, Waiting

__all__ = [
    "Concealed",
    "Ended",
    "JitterBuffer",
    "Outcome",
    "Played",
    "PlayoutCounters",
    "Waiting",
]
