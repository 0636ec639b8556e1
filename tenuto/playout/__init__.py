"""From frames as they arrive to frames as they are played. Pure."""

from tenuto.playout.jitter import JitterBuffer, PlayoutCounters, PlayoutMode
from tenuto.playout.outcome import Concealed, Ended, Outcome, Paused, Played, Waiting
from tenuto.playout.player import Block, BlockKind, Player
from tenuto.playout.snapshot import PlayerState, PlayoutSnapshot

__all__ = [
    "Block",
    "BlockKind",
    "Concealed",
    "Ended",
    "JitterBuffer",
    "Outcome",
    "Paused",
    "Played",
    "Player",
    "PlayerState",
    "PlayoutCounters",
    "PlayoutMode",
    "PlayoutSnapshot",
    "Waiting",
]
