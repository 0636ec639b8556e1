"""Time is lost or gained by whole periods of the voice, so that its pitch stays."""

from __future__ import annotations

from collections import deque

import numpy as np

from tenuto.playout.concealment import crossfade, to_samples
from tenuto.playout.pitch import Samples, likeness, mono, periods

__all__ = ["SpliceBudget", "splice"]

_FADE = 0.005

# A period may lead beyond the mark, but not out of the dead band on its other side.
_BEYOND = 0.005

# A splice is heard the less, the more alike the two places are. The further off the target, and
# the longer, the less alike they need be: noise has no period at all, and must not keep a delay.
_ALIKE = ((0.050, 0.85), (0.100, 0.60))
_ANY = -1.0
_PATIENCE = 1.0
_RELAXATION = 0.5

_NEAR_SILENCE = 64
"""Largest magnitude of a frame that may be cut anywhere: -54 dB of full scale."""


class SpliceBudget:
    """What was lost or gained in the last `window` of output, all in ticks."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._spent: deque[tuple[int, int]] = deque()
        self._place = 0

    def room(self, most: int) -> int:
        """What may be spent now, if `most` may be in any window."""
        while self._spent and self._spent[0][0] <= self._place - self._window:
            self._spent.popleft()
        return max(0, most - sum(size for _, size in self._spent))

    def spend(self, size: int) -> None:
        self._spent.append((self._place, size))

    def passed(self, size: int) -> None:
        """So much was put out."""
        self._place += size


def splice(
    before: Samples, frame: Samples, rate: int, excess: float, room: int, since: float = 0.0
) -> Samples | None:
    """The frame without one period, or with one twice; None where it would be heard.

    `before` is what sounded last, 5 ms at least. `excess` says by its sign what to do, by
    its magnitude how long the period may be: 5 ms more. `room` bounds it too, in samples.
    `since` is for how many seconds there has been an excess.
    """
    shortest, longest = periods(rate)
    fade = max(1, round(_FADE * rate))
    reach = int((abs(excess) + _BEYOND) * rate)
    longest = min(longest, len(frame) - fade, room, reach)
    if longest < shortest or len(before) < fade:
        return None
    if np.abs(frame.astype(np.int32)).max() <= _NEAR_SILENCE:
        return _cut(frame, longest, fade, lose=excess > 0)
    signal = mono(np.concatenate([before[-fade:], frame[: longest + fade]]))
    alike = likeness(signal, 2 * fade)[shortest : longest + 1]
    best = int(np.argmax(alike))
    needed = next((least for limit, least in _ALIKE if abs(excess) <= limit), _ANY)
    needed -= _RELAXATION * max(0.0, since - _PATIENCE)
    if alike[best] < needed:
        return None
    return _cut(frame, shortest + best, fade, lose=excess > 0)


def _cut(frame: Samples, period: int, fade: int, *, lose: bool) -> Samples:
    early, late = frame[:fade], frame[period : period + fade]
    if lose:
        return np.concatenate([to_samples(crossfade(early, late)), frame[period + fade :]])
    again = to_samples(crossfade(late, early))
    return np.concatenate([frame[:period], again, frame[fade:]])
