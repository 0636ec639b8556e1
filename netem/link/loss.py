"""Loss clocked by packets: the fate of the n-th packet depends on the seed and on n alone."""

from collections.abc import Callable
from typing import assert_never

from netem.link.streams import Draw
from netem.profile import GilbertElliott, RandomLoss

__all__ = ["Drops", "packet_loss"]

Drops = Callable[[float], bool]
"""Whether the packet that comes now is lost; called once for each packet, in their order."""


def packet_loss(loss: RandomLoss | GilbertElliott, draw: Draw) -> Drops:
    match loss:
        case RandomLoss(rate=rate):
            return lambda _now: draw() < rate
        case GilbertElliott():
            return _Bursts(loss, draw).drops
        case _:
            assert_never(loss)


class _Bursts:
    """The fate of a packet is drawn from the state that it meets; then the state moves on.

    The order is that of `loss_gilb_ell` in the kernel's sch_netem. Both draws are made for every
    packet, even where the result is certain, so that their number is known.
    """

    def __init__(self, model: GilbertElliott, draw: Draw) -> None:
        self._draw = draw
        self._good = (model.loss_good, model.to_bad)
        self._bad = (model.loss_bad, model.to_good)
        self._met = self._good

    def drops(self, _now: float) -> bool:
        loss, move = self._met
        lost = self._draw() < loss
        if self._draw() < move:
            self._met = self._bad if self._met is self._good else self._good
        return lost
