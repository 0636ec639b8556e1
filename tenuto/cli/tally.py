"""Seconds of what a player counts in samples: those of different formats differ in length."""

from __future__ import annotations

from dataclasses import dataclass

from tenuto.media import AudioFormat
from tenuto.playout import PlayoutSnapshot

__all__ = ["LeftOut", "Made", "Tally"]


@dataclass(frozen=True, slots=True)
class Made:
    """Seconds that the player put in or took out."""

    concealed: float = 0.0
    shrunk: float = 0.0
    stretched: float = 0.0


@dataclass(slots=True)
class LeftOut:
    """What a live listener was spared to come back to the present: read, and not heard."""

    played: int = 0
    """Frames, as `concealed`."""
    concealed: int = 0
    seconds: float = 0.0


class Tally:
    """Follows the player's counters of samples from format to format. Pure."""

    def __init__(self, audio: AudioFormat) -> None:
        self._audio = audio
        self._before = Made()
        self._counted = 0, 0, 0

    def of(self, snapshot: PlayoutSnapshot) -> Made:
        before, rate = self._before, self._audio.rate
        concealed, shrunk, stretched = (
            (now - then) / rate for now, then in zip(_samples(snapshot), self._counted, strict=True)
        )
        return Made(
            before.concealed + concealed, before.shrunk + shrunk, before.stretched + stretched
        )

    def counts(self, audio: AudioFormat) -> bool:
        """Whether the samples from now on are of this format: if not, `change` to it."""
        return audio == self._audio

    def change(self, snapshot: PlayoutSnapshot, audio: AudioFormat) -> None:
        """Samples up to `snapshot` are of the format so far, later ones of this."""
        self._before = self.of(snapshot)
        self.pass_over(snapshot, audio)

    def pass_over(self, snapshot: PlayoutSnapshot, audio: AudioFormat) -> None:
        """Those since the last change, up to `snapshot`, were heard by nobody."""
        self._counted = _samples(snapshot)
        self._audio = audio


def _samples(snapshot: PlayoutSnapshot) -> tuple[int, int, int]:
    return snapshot.concealed_samples, snapshot.shrunk_samples, snapshot.stretched_samples
