"""Random numbers by the name of who draws them, so that no stage disturbs another."""

from collections.abc import Callable
from random import Random

__all__ = ["Draw", "stream"]

Draw = Callable[[], float]
"""The next number of a stream, from 0 up to but without 1."""


def stream(seed: int | str, stage: str) -> Draw:
    """The stream of one stage: the same for the same seed, on every machine.

    A string is hashed by `random` itself, not by `hash`, whose values change with the process.
    """
    return Random(f"{seed}/{stage}").random
