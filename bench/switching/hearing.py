"""What a listener hears: each frame's arrival, and a loudspeaker whose time is never late."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from tenuto.media import AudioFormat, Frame
from tenuto.playout import Player

__all__ = ["Hearing"]

_MOST_BLOCKS: Final = 10_000
"""Read at the end of a stream, for what is left to sound: the player holds fewer."""


class Hearing:
    """Frames go into a player as they come; it is read when its sink needs a block, to the moment.

    That is worked out at the next arrival, so a process that is late itself conceals nothing.
    `now` is in seconds of one clock.
    """

    def __init__(self) -> None:
        self._player: Player | None = None
        self._sink = 0.0
        """When the next block begins to sound."""
        self._start = 0
        self._asleep = False
        self._digest = hashlib.sha256()
        self._size = 0
        self.arrivals: list[tuple[int, float, str]] = []

    def frame(self, frame: Frame, audio: AudioFormat, transport: str, now: float) -> None:
        if self._player is None:
            self._player, self._sink = Player(audio, start=frame.sequence), now
            self._start = frame.sequence
        self.listen(now)
        self._player.insert(frame, now)
        self._digest.update(frame.payload)
        self._size += len(frame.payload)
        self.arrivals.append((frame.sequence, now, transport))

    @property
    def heard(self) -> int | None:
        """The last frame that has begun to sound."""
        next = None if self._player is None else self._player.next
        return None if next is None or next <= self._start else next - 1

    def listen(self, now: float) -> None:
        """What is to sound until `now` has sounded."""
        while self._player is not None and not self._asleep and self._sink <= now:
            block = self._player.read(self._sink)
            if block.ended:
                return
            self._sink += block.duration

    def sleep(self, now: float) -> None:
        """The loudspeaker stands still until `wake`."""
        self.listen(now)
        self._asleep = True

    def wake(self, now: float) -> None:
        self._asleep, self._sink = False, now

    def finish(self) -> None:
        """All frames have come: what is held sounds to its end."""
        if self._player is None:
            return
        self._player.finish(self.arrivals[-1][0] + 1)
        for _ in range(_MOST_BLOCKS):
            block = self._player.read(self._sink)
            if block.ended:
                return
            self._sink += block.duration

    def told(self) -> Mapping[str, object]:
        """The account of it, in JSON's values."""
        counters = None if self._player is None else self._player.counters
        return {
            "arrivals": self.arrivals,
            "sha": self._digest.hexdigest(),
            "size": self._size,
            "concealed": 0 if counters is None else counters.concealed,
            "underruns": 0 if counters is None else counters.underruns,
            "waited": 0 if counters is None else counters.waited,
        }
