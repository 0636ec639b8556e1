"""Makes the two traces of the profile 4g-driving: `python netem/profiles/drive_trace.py`.

Synthetic, and always the same: a phone in a moving car, whose rate wanders over a factor of twenty
and which now and then has no link at all, in both directions at once. The mean and the length of
the gaps are those of the drives published with mahimahi and Sprout; nothing of them is copied.
"""

import math
import random
from pathlib import Path
from typing import Final

__all__ = ["SEED", "make_traces"]

SEED: Final = 20
"""Any other would do, but it would be another drive."""
LENGTH: Final = 60_000
"""Milliseconds, and the period of the trace."""
STEP: Final = 100
"""Milliseconds of one rate."""
PACKET_BITS: Final = 1_500 * 8


def make_traces(seed: int) -> dict[str, list[int]]:
    """Delivery opportunities in ms of both directions, by the name of the file."""
    drive = random.Random(seed)
    gaps = _gaps(drive)
    down = _opportunities(drive, gaps, mean=9e6, least=1e6, most=20e6)
    up = _opportunities(drive, gaps, mean=3e6, least=0.3e6, most=6e6)
    return {"4g-driving-down.trace": down, "4g-driving-up.trace": up}


def _gaps(drive: random.Random) -> list[tuple[float, float]]:
    """Spells without a link: 0.7 to 4 s long, one in about 15 s."""
    gaps: list[tuple[float, float]] = []
    now = drive.uniform(4_000, 9_000)
    while now < LENGTH - 6_000:
        length = 700 * (4_000 / 700) ** drive.random()
        gaps.append((now, now + length))
        now += length + drive.uniform(8_000, 18_000)
    return gaps


def _opportunities(
    drive: random.Random, gaps: list[tuple[float, float]], *, mean: float, least: float, most: float
) -> list[int]:
    times: list[int] = []
    level = math.log(mean)
    credit = 0.0
    for step in range(0, LENGTH, STEP):
        level += 0.1 * (math.log(mean) - level) + drive.gauss(0.0, 0.25)
        rate = min(max(math.exp(level), least), most)
        for now in range(step, step + STEP):
            if any(start <= now < end for start, end in gaps):
                continue
            credit += rate / 1_000 / PACKET_BITS
            while credit >= 1.0:
                times.append(now + 1)
                credit -= 1.0
    times.append(LENGTH)
    return times


if __name__ == "__main__":
    for name, opportunities in make_traces(SEED).items():
        text = "".join(f"{time}\n" for time in opportunities)
        Path(__file__).with_name(name).write_text(text, encoding="ascii", newline="\n")
