"""What a frame costs in a session, as a ratio to a bare `collections.deque`.

Both do the same in the same run and in turns, so that a slow or busy machine changes both alike:

- append: one frame to a full window;
- read: RUN frames from any place in the window;
- take: a listener walks from the oldest frame to the newest, RUN frames at a time;
- through: RUN frames are made, appended and given to a listener.

The deque knows no sequence, no watermark and no listener; its reader counts places by itself.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from statistics import median
from time import perf_counter_ns

from bench.report import Figures, machine, rounds, spread
from tenuto.media import AudioFormat, Frame, Piece
from tenuto.session import Ring, Session

__all__ = ["run"]

RUN = 5
"""Frames per read: what a door sends as one chunk."""

WINDOW = 640
"""Frames held by a session whose listeners declare nothing."""

FRAMES = 1000
"""Frames that pass in one measurement."""

PIECE = Piece(bytes(640), 320)

Measurement = Callable[[], float]
"""Does its work once; nanoseconds for each frame."""


def run(quick: bool) -> Iterator[Figures]:
    """A line for each operation, then the summary."""
    repeats = 30 if quick else 500
    ratios: dict[str, Figures] = {}
    for operation, ours, peer in _operations():
        times: list[tuple[float, float]] = []
        for number in rounds(repeats, operation):
            if number % 2:
                mine, theirs = ours(), peer()
            else:
                theirs, mine = peer(), ours()
            times.append((mine, theirs))
        ratios[operation] = spread([mine / theirs for mine, theirs in times])
        yield {
            "bench": "ring",
            "operation": operation,
            "ratio": ratios[operation],
            "nanoseconds_per_frame": {
                "tenuto": round(median(mine for mine, _ in times), 1),
                "deque": round(median(theirs for _, theirs in times), 1),
            },
            "rounds": repeats,
        }
    yield {
        "bench": "ring",
        "summary": True,
        "quick": quick,
        "ratio_to_deque": {name: ratio["median"] for name, ratio in ratios.items()},
        "window_frames": WINDOW,
        "frames_per_read": RUN,
        "machine": machine(),
    }


def _operations() -> Iterator[tuple[str, Measurement, Measurement]]:
    yield "append", _ring_append(), _deque_append()
    yield "read", _ring_read(), _deque_read()
    yield "take", _session_take(), _deque_read()
    yield "through", _session_through(), _deque_through()


def _timed(work: Callable[[], int]) -> float:
    """Nanoseconds for each of the frames that `work` says it moved."""
    gc.disable()
    began = perf_counter_ns()
    moved = work()
    elapsed = perf_counter_ns() - began
    gc.enable()
    return elapsed / moved


def _frames(numbers: Iterator[int], many: int) -> list[Frame]:
    return [Frame(next(numbers), PIECE.payload, PIECE.samples) for _ in range(many)]


def _full_deque() -> deque[Frame]:
    return deque(_frames(count(), WINDOW), maxlen=WINDOW)


def _ring_append() -> Measurement:
    ring, numbers = Ring(WINDOW), count()
    for frame in _frames(numbers, WINDOW):
        ring.append(frame)

    def measure() -> float:
        frames = _frames(numbers, FRAMES)

        def work() -> int:
            for frame in frames:
                ring.append(frame)
            return FRAMES

        return _timed(work)

    return measure


def _deque_append() -> Measurement:
    held, numbers = _full_deque(), count(WINDOW)

    def measure() -> float:
        frames = _frames(numbers, FRAMES)

        def work() -> int:
            for frame in frames:
                held.append(frame)
            return FRAMES

        return _timed(work)

    return measure


def _ring_read() -> Measurement:
    ring = Ring(WINDOW)
    for frame in _frames(count(), WINDOW + WINDOW // 2):
        ring.append(frame)

    def work() -> int:
        moved = 0
        for sequence in range(ring.first, ring.end, RUN):
            moved += len(ring.read(sequence, RUN))
        return moved

    return lambda: _timed(work)


def _deque_read() -> Measurement:
    held = _full_deque()

    def work() -> int:
        moved = 0
        for start in range(0, WINDOW, RUN):
            moved += len([held[place] for place in range(start, start + RUN)])
        return moved

    return lambda: _timed(work)


def _session_take() -> Measurement:
    session = _session()
    filler = session.attach("filler", 0.0, lead=None)
    while session.end < 2 * WINDOW:
        session.append(PIECE)
        session.take(filler, 0.0, RUN)

    def measure() -> float:
        cursor = session.attach("listener", 0.0, lead=None)

        def work() -> int:
            moved = 0
            while frames := session.take(cursor, 1.0, RUN):
                moved += len(frames)
            return moved

        elapsed = _timed(work)
        session.detach(cursor, 1.0)
        return elapsed

    return measure


def _session_through() -> Measurement:
    session = _session()
    cursor = session.attach("listener", 0.0, lead=None)

    def work() -> int:
        moved = 0
        while moved < FRAMES:
            for _ in range(RUN):
                if session.wants_more(1.0):
                    session.append(PIECE)
            moved += len(session.take(cursor, 1.0, RUN))
        return moved

    return lambda: _timed(work)


def _deque_through() -> Measurement:
    held, numbers = _full_deque(), count(WINDOW)

    def work() -> int:
        moved = 0
        while moved < FRAMES:
            for _ in range(RUN):
                held.append(Frame(next(numbers), PIECE.payload, PIECE.samples, PIECE.marks))
            moved += len([held[place] for place in range(-RUN, 0)])
        return moved

    return lambda: _timed(work)


def _session() -> Session:
    return Session("bench", AudioFormat(), 0.0)
