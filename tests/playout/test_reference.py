"""`JitterBuffer` against a second one, written from docs/playout.md alone, after every call."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.playout import PlayoutMode
from tests.support.playout_calls import (
    Call,
    Finish,
    Flush,
    Insert,
    Pause,
    Pull,
    Resume,
    Stretch,
    dry_again_and_again,
    traffic,
)
from tests.support.playout_comparison import KNOWN, MODES, STARTS, Setting, compare

# Single calls, close to every edge there is

MOMENTS = [-0.3, -0.000001, 0.0, 0.0000005, 0.0000015, 0.001, 0.005, 0.005001, 0.019999, 0.02]
MOMENTS += [
    0.020001,
    0.0999,
    0.1,
    0.249999,
    0.25,
    0.5,
    0.999999,
    1.0,
    1.000001,
    1.9,
    2.0,
    5.0,
    17.0,
]


@st.composite
def single_calls(draw: st.DrawFn, capacity: int) -> list[Call]:
    now = draw(st.sampled_from([0.0, 12.345678, 1_700_000_000.0, -3.0]))
    near = st.integers(-capacity - 2, capacity + 2)
    calls: list[Call] = []
    for kind in draw(st.lists(st.sampled_from("iiiipppPPrFf"), min_size=1, max_size=60)):
        now += draw(st.sampled_from(MOMENTS))
        if kind == "i":
            calls.append(Insert(draw(near | st.just(1 << 70)), now, beyond_next=True))
        elif kind == "p":
            calls.append(Pull(now))
        elif kind == "P":
            calls.append(Pause(draw(near), beyond_next=True))
        elif kind == "r":
            calls.append(Resume())
        elif kind == "F":
            calls.append(Flush(draw(near), beyond_next=True))
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
        "shift": st.sampled_from([-2.0, -0.2, -0.04, 0.016, 0.03, 0.1, 0.3, 1.5]),
        "clock": st.sampled_from([-5.0, -0.5, -0.01, 0.05, 2.0]),
        "missing": st.sampled_from([1, 7, 35, 5_000]),
        "paused": st.sampled_from([0.01, 0.1, 0.5, 3.0]),
        "flushed": st.just(True),
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


@pytest.mark.parametrize("name", KNOWN)
def test_known_calls(name: str) -> None:
    known = KNOWN[name]
    assert compare(known.calls(), known.setting) > known.played


@settings(max_examples=8)
@given(st.integers(0, 1 << 20))
def test_turns_that_step_back_over_a_wait(seed: int) -> None:
    path = itertools.islice(dry_again_and_again(random.Random(seed)), 2)
    assert compare(traffic(path, 0, random.Random(seed)), Setting()) > 250
