"""`JitterBuffer` against a second one, written from docs/playout.md alone, after every call."""

from __future__ import annotations

import importlib
import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, assert_never

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.media import Frame
from tenuto.playout import Concealed, Ended, JitterBuffer, Outcome, Played, PlayoutMode, Waiting
from tests.support.playout_calls import (
    COPIES,
    CORNERS,
    Call,
    Finish,
    Insert,
    Pull,
    Stretch,
    dry_again_and_again,
    long_walk,
    pauses_at_the_edge,
    rare_frames,
    skipped_to_the_end,
    traffic,
)
from tests.support.reference_buffer import COUNTERS, Interval, ReferenceBuffer


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
        case Pull(now):
            return pulled(subject, now), reference.pull(now)
        case _:
            assert_never(call)


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
            assert figures(subject, call.now) == reference.figures(call.now), f"before {where}"
        answer, expected = both(subject, reference, call)
        assert answer == expected, where
        now = now if isinstance(call, Finish) else call.now
        assert figures(subject, now) == reference.figures(now), f"after {where}"
    return reference.counters["played"]


# Single calls, close to every edge there is

STEPS = [-0.3, -0.000001, 0.0, 0.0000005, 0.0000015, 0.001, 0.005, 0.005001, 0.019999, 0.02]
STEPS += [0.020001, 0.0999, 0.1, 0.5, 0.999999, 1.0, 1.000001, 1.9, 2.0, 5.0, 17.0]


@st.composite
def single_calls(draw: st.DrawFn, capacity: int) -> list[Call]:
    now = draw(st.sampled_from([0.0, 12.345678, 1_700_000_000.0, -3.0]))
    near = st.integers(-capacity - 2, capacity + 2)
    calls: list[Call] = []
    for kind in draw(st.lists(st.sampled_from("iiiippppf"), min_size=1, max_size=60)):
        now += draw(st.sampled_from(STEPS))
        if kind == "i":
            calls.append(Insert(draw(near | st.just(1 << 70)), now, beyond_next=True))
        elif kind == "p":
            calls.append(Pull(now))
        else:
            calls.append(Finish(draw(near | st.just(1 << 70)), beyond_next=True))
    return calls


@settings(max_examples=400)
@given(st.data(), st.sampled_from(MODES), st.sampled_from(STARTS), st.sampled_from([1, 2, 4, 9]))
def test_single_calls(
    data: st.DataObject, mode: tuple[PlayoutMode, bool], start: int, capacity: int
) -> None:
    compare(data.draw(single_calls(capacity)), Setting(start, *mode, capacity))


# A source, a path and a sink


MS = 0.001


@st.composite
def stretch(draw: st.DrawFn) -> Stretch:
    """Mostly one thing at a time, so that playout gets to its quiet parts too."""
    plain: dict[str, st.SearchStrategy[Any]] = {
        "jitter": st.sampled_from([0, 1, 4, 12, 40, 150, 600]).map(lambda ms: ms * MS),
        "burst": st.sampled_from([2, 5, 8, 30]),
        "lost": st.sampled_from([0.02, 0.3, 1.0]),
        "doubled": st.sampled_from([0.1, 1.0]),
        "before": st.sampled_from([0.03, 0.25, 0.99, 1.01, 3.0]),
        "shift": st.sampled_from([-2.0, -0.2, -0.04, 0.03, 0.1, 1.5]),
        "clock": st.sampled_from([-5.0, -0.5, -0.01, 0.05, 2.0]),
        "missing": st.sampled_from([1, 7, 35]),
        "absurd": st.sampled_from([2000, 2048, 3000, 1 << 50]),
        "sink": st.sampled_from([0.97, 0.9995, 1.0005, 1.05, 2.0]),
        "rest": st.sampled_from([0.05, 0.5, 2.5, 20.0]),
    }
    names = draw(st.lists(st.sampled_from(sorted(plain)), max_size=3, unique=True))
    frames = draw(st.sampled_from([1, 8, 30, 100, 250]))
    return Stretch(frames, **{name: draw(plain[name]) for name in names})


@dataclass(frozen=True)
class Script:
    """What hypothesis draws and shrinks."""

    setting: Setting
    stretches: list[Stretch]
    seed: int
    end_at: float | None
    """Which part of the calls comes before the end is known."""
    end: int

    def calls(self) -> list[Call]:
        # Long enough at the beginning to play, and at the end to recover.
        stretches = [Stretch(80), *self.stretches, Stretch(60)]
        calls = list(traffic(stretches, self.setting.start, random.Random(self.seed)))
        if self.end_at is not None:
            calls.insert(int(self.end_at * len(calls)), Finish(self.end, beyond_next=True))
        return calls


scripts = st.builds(
    Script,
    st.builds(
        lambda start, mode, capacity: Setting(start, mode[0], mode[1], capacity),
        st.sampled_from(STARTS),
        st.sampled_from(MODES),
        st.sampled_from([2048, 40, 10]),
    ),
    st.lists(stretch(), min_size=1, max_size=8),
    st.integers(0, 1 << 20),
    st.none() | st.floats(0.3, 1.0),
    st.sampled_from([60, 4, 1, 0, -5, 1 << 62]),
)


@settings(max_examples=120)
@given(scripts)
def test_scripts(script: Script) -> None:
    calls = script.calls()
    assert len(calls) >= 200
    compare(calls, script.setting)


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
    "pauses": Known(Setting(), pauses_at_the_edge, -1),
    "end": Known(Setting(), skipped_to_the_end, 4),
    "dry": Known.of(itertools.islice(dry_again_and_again(random.Random(2)), 12), GAPLESS, 2_000),
    "walk": Known(WALKS[0], lambda: long_walk(0, WALKS[0].start), 5_000),
    "walk live": Known(WALKS[1], lambda: long_walk(1, WALKS[1].start), 5_000),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_calls(name: str) -> None:
    known = KNOWN[name]
    assert compare(known.calls(), known.setting) > known.played


@settings(max_examples=8)
@given(st.integers(0, 1 << 20))
def test_turns_that_step_back_over_a_wait(seed: int) -> None:
    path = itertools.islice(dry_again_and_again(random.Random(seed)), 2)
    assert compare(traffic(path, 0, random.Random(seed)), Setting()) > 250


# What is compared so, notices. Each time the shortest path that does is named.


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


NOTICED: list[tuple[str, int, str]] = [
    ("arrival._BASE_CELLS", 22, "corners live"),
    ("arrival._BASE_CELL", 110_000, "corners live"),
    ("arrival._INTERVAL", 520_000, "corners live"),
    ("arrival._PAUSE", 1_050_000, "rare"),
    ("histogram._GROWTH", 1_001, "rare"),
    ("histogram._SHRINKAGE", 984, "rare"),
    ("histogram._RAMP", 120, "rare"),
    # Where weights are cut shows only if far too much is: little is lost to rounding.
    ("histogram._HEAVY", 1 << 40, "rare"),
    ("histogram._RENORMALISE_BITS", 60, "rare"),
    ("histogram._ABOVE", 21, "rare"),
    ("target._START", 81_000, "copies"),
    ("target._FLOOR", 16_000, "corners live"),
    # More than this no cell is: it binds in no other way.
    ("target._CAP", 990_000, "copies"),
    ("target._FALL", 26, "copies"),
    ("target._FALL_TICKS", 990, "copies"),
    ("store._REMEMBERED", 288, "copies"),
    ("jitter._LIVE_MARGIN", 5_500, "corners live"),
    ("jitter._LIVE_BAND", 5_500, "corners live"),
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


@pytest.mark.parametrize(
    ("make", "path"), [(Forgetful, "copies"), (Hasty, "copies"), (Impatient, "copies")]
)
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


@pytest.mark.parametrize(("read", "path"), [(TimeOfTheAnchor, "dry"), (CutWithoutTheOpen, "rare")])
def test_another_reading_would_be_noticed(read: type[ReferenceBuffer], path: str) -> None:
    assert disagreement(path, read=read)
