"""What `JitterBuffer` is compared with would notice another: each time on the shortest path."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest

from tenuto.media import Frame
from tenuto.playout import Concealed, JitterBuffer, Outcome, Waiting
from tests.support.playout_comparison import disagreement
from tests.support.reference_buffer import Interval, ReferenceBuffer

NOTICED: list[tuple[str, int, str]] = [
    ("arrival._BASE_CELLS", 21, "outage"),
    ("arrival._BASE_CELL", 105_000, "outage"),
    ("arrival._INTERVAL", 520_000, "pauses"),
    ("arrival._PAUSE", 1_000_001, "pauses at the edge"),
    ("arrival._PAUSE", 999_999, "pauses at the edge"),
    ("arrival._SHIFT", 19_999, "shifts at the edge"),
    ("arrival._SHIFT", 20_001, "shifts at the edge"),
    ("arrival._SHIFT", 90_000, "steps"),
    ("arrival._GAP", 249_999, "gaps at the edge"),
    ("arrival._GAP", 250_001, "gaps at the edge"),
    ("arrival._GAP", 300_000, "pauses"),
    ("histogram._GROWTH", 1_001, "rare"),
    ("histogram._SHRINKAGE", 984, "rare"),
    ("histogram._RAMP", 110, "rare"),
    # Where weights are cut shows only if far too much is: little is lost to rounding.
    ("histogram._HEAVY", 1 << 40, "rare"),
    ("histogram._RENORMALISE_BITS", 60, "rare"),
    ("histogram._ABOVE", 21, "rare"),
    ("target._START", 81_000, "copies"),
    ("target._FLOOR", 16_000, "hole"),
    # More than this no cell is: it binds in no other way.
    ("target._CAP", 990_000, "copies"),
    ("target._FALL", 26, "copies"),
    ("target._FALL_TICKS", 990, "copies"),
    ("store._REMEMBERED", 288, "copies"),
    ("jitter._LIVE_MARGIN", 5_500, "hole"),
    ("jitter._LIVE_BAND", 5_500, "hole"),
    ("jitter._LONG_WAIT", 4, "pauses"),
    ("jitter._LONG_WAIT", 6, "pauses"),
    # It is held against whole frames.
    ("jitter._HELD", 20_000, "pauses"),
    ("jitter._HELD", 40_001, "pauses"),
    ("jitter._DRIFT_BAND", 10_500, "corners"),
    ("drift._WINDOW_CELLS", 17, "corners"),
    ("drift._WINDOW_CELL", 1_050_000, "corners"),
    ("drift._SETTLING", 5_500_000, "corners"),
    ("drift._JUMP", 22_500, "corners"),
]


@pytest.mark.parametrize(("constant", "other", "path"), NOTICED)
def test_another_constant_would_be_noticed(
    constant: str, other: int, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, name = constant.split(".")
    owner = importlib.import_module(f"tenuto.playout.{module}")
    assert getattr(owner, name) != other
    monkeypatch.setattr(owner, name, other)
    assert disagreement(path)


class Forgetful(JitterBuffer):
    """Loses one frame of three hundred, and says that it has it."""

    def insert(self, frame: Frame, now: float) -> bool:
        return frame.sequence % 300 == 299 or super().insert(frame, now)


class Hasty(JitterBuffer):
    """Tells a twentieth of a frame too little delay."""

    def delay(self, now: float) -> float:
        return super().delay(now) - 0.001


class Impatient(JitterBuffer):
    """Conceals where it should wait, after an underrun."""

    def pull(self, now: float) -> Outcome:
        outcome = super().pull(now)
        if isinstance(outcome, Waiting) and self.counters.underruns:
            return Concealed(self.next)
        return outcome


class Deaf(JitterBuffer):
    """Takes every pause for a fault of the path."""

    def pause(self, at: int) -> None:
        pass


class Sleepy(JitterBuffer):
    """Takes what is late after a pause for a part of it."""

    def resume(self) -> None:
        pass


BEHAVIOURS: list[tuple[type[JitterBuffer], str]] = [
    (Forgetful, "copies"),
    (Hasty, "copies"),
    (Impatient, "copies"),
    (Deaf, "paused"),
    (Sleepy, "paused"),
]


@pytest.mark.parametrize(("make", "path"), BEHAVIOURS)
def test_another_behaviour_would_be_noticed(make: type[JitterBuffer], path: str) -> None:
    assert disagreement(path, make)


class TimeOfTheAnchor(ReferenceBuffer):
    """Reads the page as if the time of the turns went with the anchor."""

    def _end_wait(self) -> int:
        self.followed = None
        return super()._end_wait()


class CutWithoutTheOpen(ReferenceBuffer):
    """Reads it as if only what is closed were made lighter."""

    def _open(self, time: int, last: Interval | None) -> Interval:
        interval = super()._open(time, last)
        if last is not None and interval.weight < last.weight:
            return replace(interval, weight=interval.weight << 40)
        return interval


class StepsAreJitter(ReferenceBuffer):
    """Reads it as if the frames of an interval only moved the base, and the spread were a delay."""

    def _quantile(self, interval: Interval) -> int:
        late = [replace(interval.arrivals[0], delay=0), *interval.arrivals]
        return super()._quantile(replace(interval, arrivals=late))


class HeldFromTheFirst(ReferenceBuffer):
    """Reads it as if places that nothing came for did not count for what is held."""

    def _may_go_on(self, now: int) -> bool:
        return super()._may_go_on(now) and (self.owed < 5 or len(self.held) > 2)


class NoJump(ReferenceBuffer):
    """Reads it as if a hole beyond the capacity could not be left out."""

    def insert(self, sequence: int, now: float) -> bool:
        if sequence < self.next + self.capacity:
            return super().insert(sequence, now)
        self.counters["received"] += 1
        self.counters["overflowed"] += 1
        return False


class ErrorAtOnce(ReferenceBuffer):
    """Reads it as if mode `gapless` kept to an anchor that is not settled."""

    def _follow(self, now: int) -> None:
        super()._follow(now)
        if self.anchor is not None:
            self.anchor.followed = max(self.anchor.followed, self.anchor.settled)


class PausesAreDelays(ReferenceBuffer):
    """Reads it as if what comes after a pause were compared with what came before it."""

    def _begin_arrivals_anew(self) -> None:
        pass


class NothingIsLeftOut(ReferenceBuffer):
    """Reads it as if what a live source said in a pause were still to come."""

    def _end_pause(self) -> None:
        self.dry = True
        super()._end_pause()
        self.dry = False


class MoreIsToCome(ReferenceBuffer):
    """Reads it as if a long wait had to be followed by more than a pause lets come."""

    def _may_go_on(self, now: int) -> bool:
        self.pause_at, kept = None, self.pause_at
        may = super()._may_go_on(now)
        self.pause_at = kept
        return may


READINGS: list[tuple[type[ReferenceBuffer], str]] = [
    (TimeOfTheAnchor, "dry"),
    (CutWithoutTheOpen, "rare"),
    (StepsAreJitter, "steps"),
    (HeldFromTheFirst, "outage"),
    (NoJump, "hole"),
    (ErrorAtOnce, "pauses gapless"),
    (PausesAreDelays, "paused"),
    (NothingIsLeftOut, "paused"),
    (MoreIsToCome, "paused in a wait"),
]


@pytest.mark.parametrize(("read", "path"), READINGS)
def test_another_reading_would_be_noticed(read: type[ReferenceBuffer], path: str) -> None:
    assert disagreement(path, read=read)
