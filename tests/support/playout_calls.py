"""Calls of a jitter buffer as values, and the traffic of a source, a path and a sink as such."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

__all__ = [
    "COPIES",
    "CORNERS",
    "HOLE",
    "OUTAGE",
    "PAUSED",
    "PAUSES",
    "STEPS",
    "Call",
    "Finish",
    "Flush",
    "Insert",
    "Pause",
    "Pull",
    "Resume",
    "Stretch",
    "dry_again_and_again",
    "gaps_at_the_edge",
    "long_walk",
    "paused_in_a_wait",
    "pauses_at_the_edge",
    "rare_frames",
    "shifts_at_the_edge",
    "skipped_to_the_end",
    "traffic",
]


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


@dataclass(frozen=True)
class Flush:
    base: int
    beyond_next: bool = False


@dataclass(frozen=True)
class Pause:
    at: int
    beyond_next: bool = False


@dataclass(frozen=True)
class Resume:
    pass


Call = Insert | Pull | Finish | Flush | Pause | Resume


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
    paused: float = 0.0
    """Seconds before it for which the source pauses, and says so."""
    flushed: bool = False
    """Whether all before it is flushed when it begins."""
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
        if stretch.paused:
            # Frames of before may come later, and the first ones afterwards sooner.
            add(sent + shift, Pause(sequence))
            sent += stretch.paused
            add(sent + rng.choice([-0.03, 0.03]), Resume())
        sequence += stretch.missing
        if stretch.flushed:
            add(sent + shift, Flush(sequence))
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


def wander(rng: random.Random) -> Iterator[Stretch]:
    """A path without end: most of it is good, and now and then something happens."""
    while True:
        jitter = rng.choice([0.0, 0.002, 0.02, 0.06, 0.25])
        quiet = Stretch(rng.randrange(100, 1500), jitter, sink=rng.choice([1.0, 0.9995, 1.0005]))
        yield quiet
        match rng.randrange(13):
            case 0:
                yield replace(quiet, frames=700, lost=0.6, jitter=0.3, doubled=0.1)
            case 1:
                jitter = rng.choice([0.0, 0.03])
                yield Stretch(300, jitter, burst=rng.choice([5, 8]), doubled=0.05)
            case 2:
                yield Stretch(50, before=rng.choice([0.1, 0.6, 1.2, 4.0]))
            case 3:
                # Longer than the window of the drift, so that it sees the step.
                yield Stretch(1200, shift=rng.choice([0.021, 0.09, 0.3]), sink=quiet.sink)
            case 4:
                yield Stretch(1200, shift=-rng.choice([0.021, 0.09, 0.3]), sink=quiet.sink)
            case 5:
                yield Stretch(20, clock=rng.choice([-1.5, -0.03, 0.03]))
            case 6:
                yield Stretch(20, missing=rng.choice([1, 3, 30, 5_000]))
            case 7:
                yield Stretch(20, absurd=1 << 50)
            case 8:
                yield from dry_and_back(rng)
            case 9:
                for _ in range(8):
                    yield replace(quiet, frames=rng.randrange(15, 90), shift=rng.uniform(0.1, 0.6))
            case 10:
                yield Stretch(rng.choice([4, 50]), lost=1.0)
            case 11:
                yield Stretch(rng.choice([0, 3]), lost=1.0)
                missing = rng.choice([0, 0, 20, 200])
                yield replace(quiet, paused=rng.choice([0.05, 0.4, 3.0]), missing=missing)
            case 12:
                yield replace(quiet, flushed=True, missing=50)


def dry_and_back(rng: random.Random) -> Iterator[Stretch]:
    """The buffer runs empty, and the clock is back before the last turn when it plays again."""
    drifting = Stretch(rng.randrange(300, 600), sink=rng.choice([0.998, 1.002]))
    yield drifting
    yield replace(drifting, before=rng.uniform(1.05, 1.5), clock=-rng.uniform(2.0, 6.0))


def dry_again_and_again(rng: random.Random) -> Iterator[Stretch]:
    while True:
        yield from dry_and_back(rng)


def rare_frames() -> Iterator[Call]:
    """Eighteen minutes of which two frames in thirty come: enough for the weights to be cut.

    The two are an interval, of which the second has the spread. As for cubes, few come very late.
    """
    rng = random.Random(0)
    for number in range(1_800):
        now = 5 + 0.6 * number
        yield Insert(30 * number, now)
        now += 0.02 + 0.229 * rng.random() ** 3
        yield Insert(30 * number + 1, now)
        yield Pull(now)


def skipped_to_the_end() -> list[Call]:
    """What a wait skips goes up to the end, and a frame is held behind that."""
    calls: list[Call] = [Insert(sequence, 1.0) for sequence in range(5)]
    calls += [Pull(1.1 + 0.02 * turn) for turn in range(9)]
    calls += [Insert(8, 1.3), Finish(7), Pull(1.3), Pull(1.32)]
    return calls


def pauses_at_the_edge() -> list[Call]:
    """A second is no pause yet, and a microsecond more is one."""
    return [Insert(0, 1.0), Insert(1, 2.0), Insert(2, 3.000001)]


def shifts_at_the_edge() -> list[Call]:
    """Frames that are intervals each: 20 ms late is a step, and a microsecond less is none."""
    moments = [1.0, 1.279999, 1.54, 1.8]
    return [Insert(13 * number, now) for number, now in enumerate(moments)]


def paused_in_a_wait() -> list[Call]:
    """Playout has run dry. One frame comes, and the pause is told; then all before it is lost."""
    calls: list[Call] = [Insert(sequence, 1.0) for sequence in range(5)]
    calls += [Pull(1.1 + 0.02 * turn) for turn in range(12)]
    calls += [Insert(5, 1.35), Pull(1.36), Pause(6), Pull(1.38), Pull(1.4)]
    calls += [Insert(6, 3.0), Insert(7, 3.0), Resume()]
    calls += [Pull(3.1 + 0.02 * turn) for turn in range(4)]
    calls += [Pause(12), *[Pull(3.18 + 0.02 * turn) for turn in range(9)]]
    return [*calls, Pause(15), Pull(3.4), Insert(15, 4.0), Pull(4.1)]


def gaps_at_the_edge() -> list[Call]:
    """A quarter of a second ends an interval, and a microsecond less does not.

    The frame after it is late by all that the interval before was, or begins a new spread.
    """
    calls: list[Call] = []
    for start, gap in [(0.0, 0.249999), (5.0, 0.25), (10.0, 0.24), (15.0, 0.26)]:
        frame = round(start / 0.02)
        calls += [Insert(frame, start), Insert(frame + 1, start + 0.12)]
        calls += [Insert(frame + 2, start + 0.12 + gap), Insert(frame + 3, start + 0.4 + gap)]
    return calls


def long_walk(seed: int, start: int, calls: int = 20_000) -> Iterator[Call]:
    rng = random.Random(seed)
    return itertools.islice(traffic(wander(rng), start, rng), calls)


CORNERS = [
    # Playout has settled, and the clock steps back to before that.
    Stretch(300),
    # A sink that drifts by more than the band.
    Stretch(1300, clock=-1.5, sink=0.9995),
    # The buffer runs empty, and the clock steps back before it plays again.
    Stretch(300, before=1.2, clock=-4.0),
    # Intervals that a burst stands across.
    Stretch(160, burst=8, spread=0.0045),
    # Steps just above what counts as one, each longer than the window of the drift.
    Stretch(1200, shift=0.022, sink=0.9995),
    Stretch(1200, shift=-0.022, sink=0.9995),
    # And the greatest that does not.
    Stretch(1200, shift=0.02),
    Stretch(500),
]
# The path grows for good by what is found within an interval, and by what only the window forgets.
STEPS = [
    Stretch(200),
    Stretch(200, shift=0.08),
    Stretch(200, jitter=0.004, shift=0.016),
    Stretch(200, jitter=0.06),
    Stretch(200, jitter=0.06, shift=0.08),
    Stretch(200, shift=-0.08),
]
# The source pauses: what comes then may be all there is. Late frames have made the target high.
PAUSES = [
    Stretch(100, jitter=0.004),
    *[Stretch(25, shift=0.3)] * 4,
    Stretch(250, jitter=0.12),
    *[Stretch(frames, jitter=0.01, shift=0.3) for frames in [37, 31, 28, 43]],
    *[Stretch(40, shift=pause) for pause in [0.1, 0.12, 0.14, 0.16, 0.18, 0.2, 0.22, 0.24, 0.26]],
]
# The source says that it pauses: for long; for less time than is held, and then for more; behind
# a tail that was lost; while a live source went on; behind one frame alone.
PAUSED = [
    Stretch(150, jitter=0.004),
    Stretch(150, jitter=0.004, paused=3.0),
    Stretch(150, jitter=0.004, shift=-0.3),
    Stretch(150, jitter=0.004, paused=0.1),
    Stretch(150, jitter=0.004, paused=0.4),
    Stretch(6, lost=1.0),
    Stretch(150, jitter=0.004, paused=2.0),
    Stretch(150, jitter=0.004, paused=2.0, missing=90),
    Stretch(1, before=0.5),
    Stretch(50, paused=1.0),
    Stretch(50, flushed=True, missing=10),
]
# For a second nothing comes: what was sent never does, or comes at once afterwards.
OUTAGE = [
    Stretch(150, jitter=0.01),
    Stretch(50, lost=1.0),
    Stretch(200, jitter=0.01),
    Stretch(200, jitter=0.01, before=1.0),
]
# No buffer can hold it. Some of the frames behind it overflow, until nothing is held.
HOLE = [Stretch(150), Stretch(150, missing=5_000), Stretch(100, before=0.5, missing=5_000)]
# Second copies 8 s later, when about as many places were given up as are remembered.
COPIES = [Stretch(60), Stretch(800, lost=0.9, doubled=0.2), Stretch(500)]
