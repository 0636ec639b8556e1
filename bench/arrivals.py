"""Synthetic arrivals: when each frame of a stream comes, by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import accumulate

from tenuto.media import FRAME_DURATION

__all__ = ["LIVE_LEAD", "PATHS", "Arrival", "bursts", "led", "ordered", "path"]

Arrival = tuple[float, int]
"""Seconds, and the frame's sequence."""

Times = list[float | None]
"""When frame n comes; None for one that is lost."""

LIVE_LEAD = 0.2
_BUILD_UP = 10
"""A lead is built at so many times real time."""


def path(name: str, frames: int, seed: int, lead: float = 0.0) -> list[Arrival]:
    """So many frames over the path of this name, in the order in which they come."""
    times = PATHS[name](random.Random(f"{name} {seed}"), led(frames, lead))
    return ordered_arrivals(times)


def led(frames: int, lead: float) -> list[float]:
    """When a server sends frame n: a lead is built first, then it is paced."""
    sent = []
    for n in range(frames):
        sent.append(max(n * FRAME_DURATION / _BUILD_UP, n * FRAME_DURATION - lead))
    return sent


def ordered_arrivals(times: Times) -> list[Arrival]:
    came = [(time, n) for n, time in enumerate(times) if time is not None]
    return sorted(came)


def ordered(times: list[float]) -> Times:
    """One stream: what comes later waits for what was sent before."""
    latest: list[float] = list(accumulate(times, max))
    return [*latest]


def clean(rng: random.Random, sent: list[float]) -> Times:
    return ordered([time + 0.03 + rng.uniform(-0.001, 0.001) for time in sent])


def gamma(mean: float) -> Callable[[random.Random, list[float]], Times]:
    def jitter(rng: random.Random, sent: list[float]) -> Times:
        return ordered([time + rng.gammavariate(2.0, mean / 2.0) for time in sent])

    return jitter


def reordered(rng: random.Random, sent: list[float]) -> Times:
    return [time + rng.gammavariate(2.0, 0.015) for time in sent]


def gaussian(rng: random.Random, sent: list[float]) -> Times:
    return ordered([time + 0.05 + max(-0.04, rng.gauss(0.0, 0.01)) for time in sent])


def spikes(rng: random.Random, sent: list[float]) -> Times:
    """5 ms of jitter, and every second or two a frame 60 to 120 ms late, with what follows."""
    late = [rng.uniform(0.06, 0.12) if rng.random() < 0.012 else 0.0 for _ in sent]
    own = [rng.uniform(0.0, 0.005) for _ in sent]
    return ordered([time + spike + rest for time, spike, rest in zip(sent, late, own, strict=True)])


def bursts(step: float, jitter: float = 0.003) -> Callable[[random.Random, list[float]], Times]:
    """Frames come by `step` seconds of audio at once."""
    size = round(step / FRAME_DURATION)

    def burst(rng: random.Random, sent: list[float]) -> Times:
        times: list[float] = []
        for first in range(0, len(sent), size):
            group = sent[first : first + size]
            times += [group[-1] + 0.02 + rng.uniform(-jitter, jitter)] * len(group)
        return ordered(times)

    return burst


def step(rng: random.Random, sent: list[float]) -> Times:
    """A third of the way the path becomes 80 ms longer."""
    at = len(sent) // 3
    return ordered(
        [time + rng.uniform(0.0, 0.01) + (0.08 if n >= at else 0.0) for n, time in enumerate(sent)]
    )


def fades(rng: random.Random, sent: list[float]) -> Times:
    """Every 5 to 15 s nothing gets through for 0.1 to 0.5 s; then all of it comes."""
    times: list[float] = []
    fade, until = rng.uniform(5.0, 15.0), 0.0
    for time in sent:
        if time >= fade:
            until = fade + rng.uniform(0.1, 0.5)
            fade = until + rng.uniform(5.0, 15.0)
        times.append(max(time, until) + rng.gammavariate(2.0, 0.002))
    return ordered(times)


def gilbert(rng: random.Random, sent: list[float]) -> Times:
    """Datagrams: 3 % lost, in runs of 2.5 frames on average; 5 ms of jitter."""
    times: Times = []
    bad = False
    for time in sent:
        bad = rng.random() < (0.6 if bad else 0.0124)
        came = time + rng.uniform(0.0, 0.005)
        times.append(None if bad else came)
    return times


PATHS: dict[str, Callable[[random.Random, list[float]], Times]] = {
    "clean": clean,
    "gamma-10": gamma(0.010),
    "gamma-30": gamma(0.030),
    "gamma-30-reordered": reordered,
    "gaussian": gaussian,
    "spikes": spikes,
    "bursts-100": bursts(0.100),
    "bursts-160": bursts(0.160),
    "step-80": step,
    "fades": fades,
    "gilbert": gilbert,
}
