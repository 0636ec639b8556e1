"""What a bed did: the path's own counts, and how true the machinery was to them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from netem.link.drops import Cause
from netem.link.tally import PathTally, Tally, WayTally
from netem.profile import Way

__all__ = ["BedTally", "Drop", "Drops", "Lateness"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """How long after its time a packet was handed on, in seconds: the emulator's own fault."""

    count: int = 0
    p50: float = 0.0
    p99: float = 0.0
    max: float = 0.0
    mean: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BedTally:
    path: PathTally
    lateness: Lateness = field(default_factory=Lateness)
    behind: float = 0.0
    """Seconds that a packet may have waited, at worst, before the emulator took it."""
    write_errors: int = 0
    """Packets that the far end did not take."""
    unread: int = 0
    """Packets that the sender's device dropped, for the emulator did not fetch them in time."""
    unscheduled: str | None = None
    """Why the emulator runs among ordinary processes, if it does."""
    uncounted: tuple[str, ...] = ()
    """What the driver cannot see, so that its zero means nothing: `delay`, or a fate."""

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "BedTally":
        return cls(
            **{
                **told,
                "path": _path(told["path"]),
                "lateness": Lateness(**told["lateness"]),
            }
        )

    def as_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A packet that the path did not hand on."""

    at: float
    """Seconds from the start of the path to when it was offered, wherever it was dropped."""
    way: Way
    cause: Cause
    """By the name of its count in the tally."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drops:
    """What befell since the path was started, or started again."""

    started: float
    """When that was, by CLOCK_MONOTONIC."""
    first: tuple[Drop, ...] = ()
    """At most `netem.link.MAX_NOTED`."""
    more: int = 0
    """Drops beyond them, of which only the tally knows the causes."""

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Drops":
        first = tuple(Drop(at=at, way=Way(way), cause=cause) for at, way, cause in told["first"])
        return cls(**{**told, "first": first})


def _path(told: Mapping[str, Any]) -> PathTally:
    ways = {way: WayTally(**{**told[way], "link": Tally(**told[way]["link"])}) for way in _WAYS}
    return PathTally(**{**told, **ways})


_WAYS = ("up", "down")
