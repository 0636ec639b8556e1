"""A player over given arrivals, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from bench.arrivals import Arrival
from tenuto.media import FRAME_DURATION, AudioFormat, Frame
from tenuto.playout import BlockKind, Player, PlayoutMode

__all__ = ["Playback", "Turn", "play", "voice"]


_TOLD = 1000
"""Turns between two words about how far it is."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One block: when it began to sound, and how it lay against media time."""

    now: float
    kind: BlockKind
    sequence: int | None
    """Of the frame whose turn it was."""
    delay: float
    target: float
    duration: float

    @property
    def position(self) -> float:
        """When the frame is played, against its place in media time."""
        return self.now - (self.sequence or 0) * FRAME_DURATION


@dataclass(slots=True)
class Playback:
    """What a player did."""

    player: Player
    turns: list[Turn] = field(default_factory=list)

    def played(self, first: int = 0) -> list[Turn]:
        return [
            turn
            for turn in self.turns
            if turn.kind == "played" and turn.sequence is not None and turn.sequence >= first
        ]

    def late(self, first: int = 0) -> float:
        """Turns of 20 ms, from that of frame `first` on, for which the frame was not there."""
        return sum(
            turn.duration / FRAME_DURATION
            for turn in self.turns
            if turn.kind in ("concealed", "waiting") and (turn.sequence or 0) >= max(first, 1)
        )

    def underruns(self, first: int = 0) -> int:
        """Waits that begin with the turn of frame `first` or later."""
        pairs = zip(self.turns, self.turns[1:], strict=False)
        return sum(
            after.kind == "waiting" and before.kind != "waiting" and (after.sequence or 0) >= first
            for before, after in pairs
        )


def voice(audio: AudioFormat) -> list[bytes]:
    """A second of a harmonic sound of 125 Hz as frames, to be repeated."""
    time = np.arange(audio.rate) / audio.rate
    sound = sum(np.sin(2 * np.pi * 125 * n * time) / n for n in range(1, 9))
    samples = np.repeat(np.rint(5000 * np.asarray(sound)).astype("<i2"), audio.channels)
    data, size = samples.tobytes(), audio.frame_size
    return [data[k : k + size] for k in range(0, len(data), size)]


def play(
    arrivals: Iterable[Arrival],
    *,
    mode: PlayoutMode,
    drift: bool = True,
    sink: float = 1.0,
    audio: AudioFormat = AudioFormat(),  # noqa: B008 - a value
    capacity: int = 2048,
    told: Callable[[float], None] = lambda _: None,
) -> Playback:
    """Play them all, END right after the last. `sink` is how fast the sink's clock runs.

    `told` gets what part of the time has passed, now and then.
    """
    queue = list(arrivals)
    start = min(sequence for _, sequence in queue)
    end = max(sequence for _, sequence in queue) + 1
    payloads = voice(audio)
    player = Player(audio, start=start, mode=mode, drift=drift, capacity=capacity)
    playback = Playback(player)
    now, place = queue[0][0], 0
    while True:
        while place < len(queue) and queue[place][0] <= now:
            at, sequence = queue[place]
            frame = Frame(sequence, payloads[sequence % len(payloads)], audio.samples_per_frame)
            player.insert(frame, at)
            place += 1
            if place == len(queue):
                player.finish(end)
        sequence_due = player.next
        delay, target = player.delay(now), player.target
        block = player.read(now)
        if block.ended:
            return playback
        turn = Turn(now, block.kind, sequence_due, delay, target, block.duration)
        playback.turns.append(turn)
        if len(playback.turns) % _TOLD == 0:
            told(min(1.0, (now - queue[0][0]) / max(1.0, queue[-1][0] - queue[0][0])))
        now += block.duration / sink
