"""Loss clocked by time: fades begin and end at their own moments, whatever is in the air."""

from math import log

from netem.link.streams import Draw
from netem.profile import Fades

__all__ = ["Fading"]


class Fading:
    def __init__(self, fades: Fades, spells: Draw, losses: Draw, started: float) -> None:
        if not 0.0 < fades.length < fades.every:
            raise ValueError(f"a fade of {fades.length} s does not fit into every {fades.every} s")
        self._clear = fades.every - fades.length
        self._length = fades.length
        self._loss = fades.loss
        self._spells = spells
        self._losses = losses
        self._faded = False
        self._until = started + self._spell(self._clear)

    def _spell(self, mean: float) -> float:
        """Exponentially distributed: a spell does not know how long it has lasted."""
        return -mean * log(1.0 - self._spells())

    def drops(self, now: float) -> bool:
        while now >= self._until:
            self._faded = not self._faded
            self._until += self._spell(self._length if self._faded else self._clear)
        # Drawn for every packet: the n-th number belongs to the n-th packet, faded or not.
        return self._losses() < self._loss and self._faded
