"""What a sink gets when it asks for its next 20 ms."""

from __future__ import annotations

from dataclasses import dataclass

from tenuto.media import Frame

__all__ = ["Concealed", "Ended", "Outcome", "Paused", "Played", "Waiting"]


@dataclass(frozen=True, slots=True)
class Played:
    """This frame, now.

    `skipped` frames before it never came, and the wait that ends here stood for them.
    """

    frame: Frame
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Concealed:
    """Frame `sequence` did not come in time: play something in its place.

    `skipped` as for `Played`.
    """

    sequence: int
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing to play yet: prefilling, or refilling after an underrun."""


@dataclass(frozen=True, slots=True)
class Paused:
    """Everything before the place where the source pauses has been played."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Everything has been played."""


Outcome = Played | Concealed | Waiting | Paused | Ended
