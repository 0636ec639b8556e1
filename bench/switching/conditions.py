"""The paths of `bench switch`, as profiles of netem."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from netem.profile import (
    Blackout,
    Block,
    Conditions,
    Police,
    Profile,
    RandomLoss,
    Way,
)

__all__ = ["DEATHS", "blacked_out", "dying", "farther", "path"]

DEATHS: Final = {
    "both ways": (Block(), None),
    "down only": (Block(way=Way.DOWN), None),
    "up only": (Block(way=Way.UP), None),
    "throttled": (None, Police(bits_per_second=8_000.0, burst=3_000)),
    "after 20 packets": (Block(first_packets=20), None),
}
"""What befalls UDP in mid-stream, by its name."""


def path(rtt: float, *, loss: float = 0.0) -> Profile:
    side = Conditions(delay=rtt / 2, loss=RandomLoss(rate=loss) if loss else None)
    return Profile(name=f"RTT {rtt * 1000:g} ms", up=side, down=side)


def dying(profile: Profile, how: str) -> Profile:
    block, police = DEATHS[how]
    return replace(profile, block=block, police=police)


def blacked_out(profile: Profile, seconds: float) -> Profile:
    """Nothing passes from its beginning on, for so long."""
    blackouts = (Blackout(start=0.0, length=seconds),)
    up, down = (replace(profile.conditions(way), blackouts=blackouts) for way in Way)
    return replace(profile, up=up, down=down)


def farther(profile: Profile, rtt: float) -> Profile:
    """The same obstacles on a longer path."""
    up, down = (replace(profile.conditions(way), delay=rtt / 2) for way in Way)
    return replace(profile, name=f"{profile.name}, RTT {rtt * 1000:g} ms", up=up, down=down)
