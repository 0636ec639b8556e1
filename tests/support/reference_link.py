"""One direction of a path that leaves nothing to chance, told again from what its values mean.

Written from the words of `netem.profile.conditions` and `netem.link.link` and from nothing else.
Slow and plain: nothing is remembered but who was let in when, and all else is found by walking
that past.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from netem.profile import Blackout, Conditions, Rate, Schedule

__all__ = ["ReferenceLink"]

OPPORTUNITY = 1_500


@dataclass
class ReferenceLink:
    conditions: Conditions
    started: float
    too_big: int = 0
    blacked_out: int = 0
    queue_dropped: int = 0
    passed: list[tuple[int, int, float]] = field(default_factory=list)
    """Number, size and moment at the bottleneck of each packet that got into it, or past it."""

    def offer(self, number: int, size: int, now: float) -> None:
        conditions = self.conditions
        arrives = now + conditions.delay
        if conditions.mtu is not None and size > conditions.mtu.size:
            self.too_big += 1
        elif any(covers(dark, now - self.started) for dark in conditions.blackouts):
            self.blacked_out += 1
        elif conditions.bottleneck and self._waiting(arrives) >= conditions.bottleneck.queue:
            self.queue_dropped += 1
        else:
            self.passed.append((number, size, arrives))

    def arrivals(self) -> list[tuple[int, float]]:
        numbers = [number for number, _, _ in self.passed]
        return list(zip(numbers, self._leave(), strict=True))

    def _waiting(self, now: float) -> int:
        """Who waits at the bottleneck, with the one on the wire."""
        return sum(leaves > now for leaves in self._leave())

    def _leave(self) -> list[float]:
        """When the last byte of each packet leaves the bottleneck."""
        match self.conditions.bottleneck:
            case None:
                return [came for _, _, came in self.passed]
            case Rate(bits_per_second=rate):
                return self._leave_at_rate(rate)
            case Schedule() as schedule:
                return self._leave_by_schedule(schedule)

    def _leave_at_rate(self, rate: float) -> list[float]:
        leave: list[float] = []
        for _, size, came in self.passed:
            begins = max([came, *leave[-1:]])
            leave.append(begins + size * 8 / rate)
        return leave

    def _leave_by_schedule(self, schedule: Schedule) -> list[float]:
        leave: list[float] = []
        moments = opportunities(schedule, self.started)
        still = [size for _, size, _ in self.passed]
        while len(leave) < len(self.passed):
            moment, room = next(moments), OPPORTUNITY
            # Who comes at the very moment comes too late for it.
            while len(leave) < len(self.passed) and self.passed[len(leave)][2] < moment:
                carried = min(room, still[len(leave)])
                room -= carried
                still[len(leave)] -= carried
                if still[len(leave)]:
                    break
                leave.append(moment)
        return leave


def opportunities(schedule: Schedule, started: float) -> Iterator[float]:
    """Without end: the last of them is the period."""
    begun = 0
    while True:
        for milliseconds in schedule.opportunities:
            yield started + (begun + milliseconds) / 1000.0
        begun += schedule.opportunities[-1]


def covers(dark: Blackout, elapsed: float) -> bool:
    since = Fraction(elapsed) - Fraction(dark.start)
    while since >= 0:
        if since < Fraction(dark.length):
            return True
        if dark.every is None:
            return False
        since -= Fraction(dark.every)
    return False
