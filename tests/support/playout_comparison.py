"""A jitter buffer and the plain one, call by call, and calls that are the same each time."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import assert_never

from tenuto.media import Frame
from tenuto.playout import Concealed, Ended, JitterBuffer, Paused, Played, PlayoutMode, Waiting
from tests.support.playout_calls import (
    COPIES,
    CORNERS,
    HOLE,
    OUTAGE,
    PAUSED,
    PAUSES,
    STEPS,
    Call,
    Finish,
    Flush,
    Insert,
    Pause,
    Pull,
    Resume,
    Stretch,
    dry_again_and_again,
    gaps_at_the_edge,
    long_walk,
    paused_in_a_wait,
    pauses_at_the_edge,
    rare_frames,
    shifts_at_the_edge,
    skipped_to_the_end,
    traffic,
)
from tests.support.reference_buffer import COUNTERS, ReferenceBuffer

__all__ = ["KNOWN", "MODES", "STARTS", "Setting", "compare", "disagreement"]


@dataclass(frozen=True)
class Setting:
    """What a buffer is made with."""

    start: int = 0
    mode: PlayoutMode = "gapless"
    drift: bool = True
    capacity: int = 2048

    def subject(self, make: type[JitterBuffer] = JitterBuffer) -> JitterBuffer:
        return make(self.start, mode=self.mode, drift=self.drift, capacity=self.capacity)

    def reference(self, read: type[ReferenceBuffer] = ReferenceBuffer) -> ReferenceBuffer:
        return read(self.start, self.mode, self.drift, self.capacity)


MODES: list[tuple[PlayoutMode, bool]] = [("live", True), ("gapless", True), ("gapless", False)]
STARTS = [0, 65_530, (1 << 40) + 7]


def pulled(buffer: JitterBuffer, now: float) -> tuple[str, int, int]:
    match buffer.pull(now):
        case Played(frame, skipped):
            return "played", frame.sequence, skipped
        case Concealed(sequence, skipped):
            return "concealed", sequence, skipped
        case Waiting():
            return "waiting", 0, 0
        case Paused():
            return "paused", 0, 0
        case Ended():
            return "ended", 0, 0


def figures(buffer: JitterBuffer, now: float) -> dict[str, object]:
    return {
        "next": buffer.next,
        "depth": buffer.depth,
        "filling": buffer.filling,
        "target": buffer.target,
        "quantile": buffer.quantile,
        "base": buffer.base,
        "delay": buffer.delay(now),
        "excess": buffer.excess(now),
        "counters": {name: getattr(buffer.counters, name) for name in COUNTERS},
    }


def both(subject: JitterBuffer, reference: ReferenceBuffer, call: Call) -> tuple[object, object]:
    """What the two answer."""
    match call:
        case Insert(sequence, now, beyond_next):
            sequence += reference.next if beyond_next else 0
            taken = subject.insert(Frame(sequence, b"", 320), now)
            return taken, reference.insert(sequence, now)
        case Finish(end, beyond_next):
            end += reference.next if beyond_next else 0
            subject.finish(end)
            reference.finish(end)
            return None, None
        case Flush(base, beyond_next):
            base += reference.next if beyond_next else 0
            subject.flush(base)
            reference.flush(base)
            return None, None
        case Pause(at, beyond_next):
            at += reference.next if beyond_next else 0
            subject.pause(at)
            reference.pause(at)
            return None, None
        case Resume():
            subject.resume()
            reference.resume()
            return None, None
        case Pull(now):
            return pulled(subject, now), reference.pull(now)
        case _:
            assert_never(call)


def the_same(subject: JitterBuffer, reference: ReferenceBuffer, now: float, where: str) -> None:
    found, expected = figures(subject, now), reference.figures(now)
    if found != expected:
        wrong = [
            f"{name} {found[name]}, not {one}"
            for name, one in expected.items()
            if found[name] != one
        ]
        raise AssertionError(f"{where}: {'; '.join(wrong)}")


def compare(
    calls: Iterable[Call],
    setting: Setting,
    make: type[JitterBuffer] = JitterBuffer,
    read: type[ReferenceBuffer] = ReferenceBuffer,
) -> int:
    """Make the calls on both and compare all there is; how many frames were played."""
    subject, reference = setting.subject(make), setting.reference(read)
    now = 0.0
    for number, call in enumerate(calls):
        where = f"call {number}, {call}, {setting}"
        if isinstance(call, Pull):
            # What the excess is before its turn is what a player goes by.
            the_same(subject, reference, call.now, f"before {where}")
        answer, expected = both(subject, reference, call)
        assert answer == expected, f"{where}: {answer}, not {expected}"
        now = call.now if isinstance(call, Insert | Pull) else now
        the_same(subject, reference, now, f"after {where}")
    return reference.counters["played"]


@dataclass(frozen=True)
class Known:
    """Calls that are the same each time."""

    setting: Setting
    calls: Callable[[], Iterable[Call]]
    played: int

    @classmethod
    def of(cls, path: Iterable[Stretch], mode: int, played: int) -> Known:
        stretches = list(path)
        return cls(
            Setting(0, *MODES[mode]), lambda: traffic(stretches, 0, random.Random(1)), played
        )


LIVE, GAPLESS = 0, 1
WALKS = [Setting(STARTS[0], "gapless", True, 2048), Setting(STARTS[1], "live", True, 100)]
KNOWN = {
    "copies": Known.of(COPIES, LIVE, 400),
    "corners": Known.of(CORNERS, GAPLESS, 4_000),
    "corners live": Known.of(CORNERS, LIVE, 4_000),
    "rare": Known(Setting(0, *MODES[LIVE], 1 << 20), rare_frames, 50),
    "pauses at the edge": Known(Setting(), pauses_at_the_edge, -1),
    "gaps at the edge": Known(Setting(), gaps_at_the_edge, -1),
    "shifts at the edge": Known(Setting(), shifts_at_the_edge, -1),
    "steps": Known.of(STEPS, LIVE, 1_000),
    "pauses": Known.of(PAUSES, LIVE, 700),
    "paused": Known.of(PAUSED, LIVE, 700),
    "paused gapless": Known.of(PAUSED, GAPLESS, 700),
    "paused in a wait": Known(Setting(), paused_in_a_wait, 6),
    "pauses gapless": Known.of(PAUSES, GAPLESS, 700),
    "outage": Known.of(OUTAGE, LIVE, 400),
    "hole": Known.of(HOLE, LIVE, 300),
    "end": Known(Setting(), skipped_to_the_end, 4),
    "dry": Known.of(itertools.islice(dry_again_and_again(random.Random(2)), 12), GAPLESS, 2_000),
    "walk": Known(WALKS[0], lambda: long_walk(0, WALKS[0].start), 5_000),
    "walk live": Known(WALKS[1], lambda: long_walk(1, WALKS[1].start), 5_000),
}


def disagreement(
    name: str,
    make: type[JitterBuffer] = JitterBuffer,
    read: type[ReferenceBuffer] = ReferenceBuffer,
) -> bool:
    known = KNOWN[name]
    try:
        compare(known.calls(), known.setting, make, read)
    except AssertionError:
        return True
    return False
