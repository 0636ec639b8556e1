"""Sound in place of frames that did not come: the last period again, fading (G.711 Appendix I)."""

from __future__ import annotations

from collections import deque

import numpy as np

from tenuto.media import AudioFormat
from tenuto.playout.pitch import Floats, Samples, likeness, mono, periods

__all__ = ["Concealer", "crossfade", "fade_in", "fade_out", "to_samples"]

_HISTORY = 0.050
_TEMPLATE = 0.020
_FULL = 0.010
_SILENT = 0.060
_SEAM = 0.005
_FADE_IN = 0.003

_SILENCE = 32
"""Largest magnitude that counts as silence at a seam: -60 dB of full scale."""


def to_samples(values: Floats) -> Samples:
    rounded: Samples = np.clip(np.rint(values), -32768, 32767).astype(np.int16)
    return rounded


def _ramp(length: int) -> Floats:
    """Rising from above 0 to below 1, for all channels alike."""
    rising: Floats = (np.arange(1, length + 1) / (length + 1))[:, np.newaxis]
    return rising


def crossfade(old: Samples | Floats, new: Samples | Floats) -> Floats:
    """From one signal to the other over their common length."""
    weight = _ramp(len(new))
    mixed: Floats = old * (1.0 - weight) + new * weight
    return mixed


def fade_in(samples: Samples, rate: int) -> Samples:
    """The samples, their first 3 ms rising from silence unless they are silent anyway."""
    length = min(round(_FADE_IN * rate), len(samples))
    head = samples[:length]
    if is_quiet(head):
        return samples
    return np.concatenate([to_samples(head * _ramp(length)), samples[length:]])


def fade_out(samples: Samples) -> Samples:
    """The samples, falling to silence over their whole length."""
    return to_samples(samples * (1.0 - _ramp(len(samples))))


def is_quiet(samples: Samples) -> bool:
    return bool(np.abs(samples.astype(np.int32)).max(initial=0) <= _SILENCE)


class Concealer:
    """Remembers what sounded last and goes on with it where nothing comes.

    An episode begins with the first `conceal` and ends with `recover` or `bridge`.
    """

    def __init__(self, audio: AudioFormat) -> None:
        self._audio = audio
        self._seam = max(1, round(_SEAM * audio.rate))
        self._wanted = round(_HISTORY * audio.rate)
        # Blocks have 5 ms at least, but for short frames: those are joined up.
        self._blocks: deque[Samples] = deque()
        self._length = 0
        self._loop: Floats | None = None
        self._step: Floats = np.zeros((1, audio.channels))
        self._place = 0

    @property
    def active(self) -> bool:
        """Whether an episode is on."""
        return self._loop is not None

    @property
    def quiet(self) -> bool:
        """Whether the sound stands at silence, so that it may end here without a click."""
        return is_quiet(self.history(self._seam))

    def heard(self, samples: Samples) -> None:
        """Remember what was played."""
        self._blocks.append(samples)
        self._length += len(samples)
        while self._length - len(self._blocks[0]) >= self._wanted:
            self._length -= len(self._blocks.popleft())
        if len(self._blocks) > 2 * _HISTORY / _SEAM:
            self._blocks = deque([np.concatenate(self._blocks)[-self._wanted :]])
            self._length = len(self._blocks[0])

    def history(self, length: int) -> Samples:
        """The last samples played, silence before the first."""
        taken: list[Samples] = []
        missing = length
        for block in reversed(self._blocks):
            if missing <= 0:
                break
            taken.append(block[-missing:])
            missing -= len(taken[-1])
        if missing > 0:
            taken.append(np.zeros((missing, self._audio.channels), np.int16))
        return np.concatenate(taken[::-1])

    def conceal(self, length: int) -> Samples:
        """The next `length` samples of the episode, remembered as heard."""
        samples = self._go_on(length)
        self.heard(samples)
        return samples

    def recover(self, samples: Samples) -> Samples:
        """End the episode in a frame that takes over in time: it is faded in."""
        length = min(self._seam, len(samples))
        seam = to_samples(crossfade(self._go_on(length), samples[:length]))
        self._loop = None
        return np.concatenate([seam, samples[length:]])

    def bridge(self, samples: Samples) -> Samples:
        """End the episode before a frame that waited: 5 ms that lead up to its first sample.

        The frame itself stays whole. What leads up to it is its mirror image.
        """
        length = min(self._seam, len(samples))
        mirrored = samples[:length][::-1]
        led = to_samples(crossfade(self._go_on(length), mirrored))
        self._loop = None
        return led

    def fade_out(self) -> Samples:
        """5 ms that bring the sound to silence, and end the episode."""
        going = self._go_on(self._seam)
        self._loop = None
        return to_samples(going * (1.0 - _ramp(self._seam)))

    def _go_on(self, length: int) -> Samples:
        loop = self._begin() if self._loop is None else self._loop
        places = np.arange(self._place, self._place + length)
        self._place += length
        values = loop[places % len(loop)]
        # The step between what sounded last and the loop's beginning is spread over the start.
        fading = np.maximum(0.0, 1.0 - (places + 1) / (len(loop) // 4 + 1))
        values = values + fading[:, np.newaxis] * self._step
        rate = self._audio.rate
        gain = (_SILENT * rate - places) / ((_SILENT - _FULL) * rate)
        return to_samples(values * np.clip(gain, 0.0, 1.0)[:, np.newaxis])

    def _begin(self) -> Floats:
        """Find the period and make its loop, whose end leads to its beginning."""
        history = self.history(self._wanted)
        period = self._period(history)
        loop: Floats = history[-period:].astype(np.float64)
        seam = period // 4
        if seam:
            before = history[-period - seam : -period]
            loop[-seam:] = crossfade(loop[-seam:], before)
        self._step = (history[-1].astype(np.float64) - history[-period - 1])[np.newaxis, :]
        self._place = 0
        self._loop = loop
        return loop

    def _period(self, history: Samples) -> int:
        rate = self._audio.rate
        shortest, longest = periods(rate)
        template = round(_TEMPLATE * rate)
        # Reversed in time: the template is the end, and distances run into the past.
        past = mono(history[-template - longest :])[::-1]
        alike = likeness(past, template)
        return shortest + int(np.argmax(alike[shortest : longest + 1]))
