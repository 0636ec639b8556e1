"""Calls of a jitter buffer as values, and the traffic of a source, a path and a sink as such."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["Call", "Finish", "Insert", "Pull", "Stretch", "traffic"]


@dataclass(frozen=True)
class Insert:
    sequence: int
    now: float
    beyond_next: bool = False
    """Whether `sequence` counts from the frame whose turn is next."""


@dataclass(frozen=True)
class Pull:
    now: float


@dataclass(frozen=True)
class Finish:
    end: int
    beyond_next: bool = False


Call = Insert | Pull | Finish


@dataclass(frozen=True)
class Stretch:
    """So many frames of one kind of path."""

    frames: int
    jitter: float = 0.0
    """Seconds, of which a frame takes a part that is drawn for it: it may overtake."""
    burst: int = 1
    """Frames that come together, when the last of them is there."""
    spread: float = 0.0
    """Seconds between the frames of a burst."""
    lost: float = 0.0
    """Share."""
    doubled: float = 0.0
    before: float = 0.0
    """Seconds nothing comes for; afterwards all at once that was sent meanwhile."""
    shift: float = 0.0
    """Seconds that the path grows or the source's lead shrinks."""
    clock: float = 0.0
    """Seconds that the clock of the arrivals jumps."""
    missing: int = 0
    """Places before it that are never sent, though no time is left for them."""
    absurd: int = 0
    """What is added to the sequences of these frames alone."""
    sink: float = 1.0
    """How fast the sink pulls."""
    rest: float = 0.0
    """Seconds that the sink pulls nothing for."""


def traffic(stretches: Iterable[Stretch], start: int, rng: random.Random) -> Iterator[Call]:
    """The calls in the order of their true time; the clocks may say something else."""
    events: list[tuple[float, int, Call]] = []

    def add(at: float, call: Call) -> None:
        heapq.heappush(events, (at, rng.getrandbits(30), call))

    sent, pull, shift, clock, sequence = 10.0, 10.0, 0.0, 0.0, start
    for stretch in stretches:
        shift += stretch.shift
        clock += stretch.clock
        sequence += stretch.missing
        held_until = sent + stretch.before
        pull += stretch.rest
        for number in range(stretch.frames):
            together = sent + 0.02 * (stretch.burst - 1 - number % stretch.burst)
            together += stretch.spread * (number % stretch.burst)
            at = max(held_until, together + shift + stretch.jitter * rng.random())
            if rng.random() >= stretch.lost:
                add(at, Insert(sequence + stretch.absurd, at + clock))
            if rng.random() < stretch.doubled:
                again = at + rng.choice([0.0, 0.003, 0.2, 8.0])
                add(again, Insert(sequence, again + clock))
            sent += 0.02
            sequence += 1
        while pull < sent:
            add(pull, Pull(pull + min(clock, 0.0)))
            pull += 0.02 / stretch.sink
        while events and events[0][0] < sent:
            yield heapq.heappop(events)[2]
    while events:
        yield heapq.heappop(events)[2]
