"""The profiles that the bench of the loss lab is run with."""

from __future__ import annotations

from netem.profile import Conditions, Profile, RandomLoss

__all__ = ["DELAY", "PROFILES"]

DELAY = 0.030

_SIDES = {
    "clear": Conditions(),
    "clear30": Conditions(delay=DELAY),
    "loss5": Conditions(loss=RandomLoss(rate=0.05)),
    "loss5-30": Conditions(delay=DELAY, loss=RandomLoss(rate=0.05)),
}

PROFILES = {name: Profile(name=name, up=side, down=side) for name, side in _SIDES.items()}
"""Both directions alike; `loss5-30` is the built-in profile loss5."""
