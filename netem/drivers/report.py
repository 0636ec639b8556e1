"""What a bed did: the path's own counts, and how true the machinery was to them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from netem.link.tally import PathTally, Tally, WayTally

__all__ = ["BedTally", "Lateness"]


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


def _path(told: Mapping[str, Any]) -> PathTally:
    ways = {way: WayTally(**{**told[way], "link": Tally(**told[way]["link"])}) for way in _WAYS}
    return PathTally(**{**told, **ways})


_WAYS = ("up", "down")
