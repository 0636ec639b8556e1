"""What one listener told of its flow, and the questions that can be asked of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from tenuto.media import FRAME_DURATION

__all__ = ["Account", "Arrival", "Decision", "Told"]

Told = Mapping[str, Any]
"""An event: its name under `event`, its moment under `at`, and what else it says."""

_IN_TIME: Final = 0.100
"""Seconds by which a frame may be later than the earliest one and yet be in time."""


class Arrival(NamedTuple):
    sequence: int
    at: float
    transport: str


class Decision(NamedTuple):
    """To go on elsewhere."""

    at: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Moments are CLOCK_MONOTONIC's, in seconds."""

    began: float
    arrivals: tuple[Arrival, ...]
    events: tuple[Told, ...]
    sha: str
    size: int
    concealed: int
    underruns: int
    waited: int
    gaps: int
    duplicates: int
    complete: bool
    trouble: str | None
    lag: float
    counts: tuple[tuple[float, int, int, int], ...] = ()

    @classmethod
    def from_json(cls, record: Mapping[str, Any], events: Sequence[Told]) -> Account:
        lists = {
            "arrivals": tuple(Arrival(*each) for each in record["arrivals"]),
            "counts": tuple(tuple(each) for each in record["counts"]),
        }
        return cls(**{**record, **lists}, events=tuple(events))

    @property
    def first_audio(self) -> float | None:
        """Seconds from the opening to the first frame."""
        return self.arrivals[0].at - self.began if self.arrivals else None

    @property
    def silence(self) -> float:
        """Seconds for which the loudspeaker had nothing, after it had begun."""
        return self.waited * FRAME_DURATION

    @property
    def switches(self) -> int:
        """Changes of the transport by which frames came."""
        pairs = pairwise(self.arrivals)
        return sum(before.transport != after.transport for before, after in pairs)

    def named(self, *names: str) -> list[Told]:
        return [event for event in self.events if event["event"] in names]

    def longest_gap(self) -> float:
        """Seconds between two arrivals; 0 with fewer than two."""
        return max((after.at - before.at for before, after in pairwise(self.arrivals)), default=0.0)

    def decision(self, after: float) -> Decision | None:
        """The first one, of the client's own accord: another leg is opened, or this one is lost."""
        decisions = []
        for event in self.events:
            if event["event"] == "moved" and event.get("reason", "asked") != "asked":
                decisions.append(Decision(event["at"] - event["first_frame"], event["reason"]))
            elif event["event"] == "interrupted":
                decisions.append(Decision(event["at"], f"lost: {event['reason']}"))
        return min((each for each in decisions if each.at >= after), default=None)

    def last_in_time(self, before: float) -> float | None:
        """When the last frame came, before that moment, that was on the server's schedule."""
        base, last = float("inf"), None
        for sequence, at, _ in self.arrivals:
            if at >= before:
                break
            base = min(base, at - sequence * FRAME_DURATION)
            if at - sequence * FRAME_DURATION - base <= _IN_TIME:
                last = at
        return last

    def transport_at(self, moment: float) -> str | None:
        """What brought the last frame until then."""
        before = [arrival.transport for arrival in self.arrivals if arrival.at <= moment]
        return before[-1] if before else None

    def first_after(self, moment: float, transport: str | None = None) -> float | None:
        """When the first frame came after that moment, over this transport or any."""
        for arrival in self.arrivals:
            if arrival.at > moment and transport in (None, arrival.transport):
                return arrival.at
        return None

    def sent(self, column: int, begin: float, end: float) -> int:
        """By the count in this column (see `counting.Counts`) between two moments."""
        counted = [each for each in self.counts if begin <= each[0] <= end]
        return int(counted[-1][column] - counted[0][column]) if counted else 0
