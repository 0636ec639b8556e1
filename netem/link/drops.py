"""Packets that were dropped: counted by cause, and each told to whoever wants to know."""

from collections.abc import Callable
from typing import Final, Literal

from netem.profile import Way

__all__ = ["MAX_NOTED", "Cause", "DropLog", "Dropped", "OnDrop"]

MAX_NOTED: Final = 20_000
"""Drops of a path that are noted one by one: the first ones. Of the rest there is a count."""

Cause = Literal[
    "lost",
    "faded",
    "blacked_out",
    "queue_dropped",
    "overflowed",
    "blocked",
    "policed",
    "too_big",
    "unbound",
]
"""By the name of its count in `Tally` or `WayTally`."""

OnDrop = Callable[[Cause, float], None]
"""Told of each drop: why, and when the packet was offered, wherever on its way it was dropped."""


class Dropped:
    """The counts of one direction. Only who drops pays, and only a count where nobody listens."""

    def __init__(self, on_drop: OnDrop | None) -> None:
        self._counts: dict[Cause, int] = {}
        self._on_drop = on_drop

    def add(self, cause: Cause, offered: float) -> None:
        self._counts[cause] = self._counts.get(cause, 0) + 1
        if self._on_drop is not None:
            self._on_drop(cause, offered)

    def __getitem__(self, cause: Cause) -> int:
        return self._counts.get(cause, 0)


class DropLog:
    """The drops of a path that began at `started`."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.noted: list[tuple[float, Way, Cause]] = []
        """Seconds from the start to the offer of the packet, its way, and why; as they befell."""
        self.more = 0
        """Drops that came when no more were noted."""

    def note(self, way: Way, cause: Cause, offered: float) -> None:
        if len(self.noted) < MAX_NOTED:
            self.noted.append((offered - self.started, way, cause))
        else:
            self.more += 1
