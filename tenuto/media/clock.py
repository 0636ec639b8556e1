"""From sequence numbers to sample timestamps and seconds."""

from __future__ import annotations

from dataclasses import dataclass

from tenuto.media.format import FRAME_DURATION, AudioFormat

__all__ = ["SampleClock"]


@dataclass(frozen=True, slots=True)
class SampleClock:
    """The timeline of one epoch, which begins with frame `base`."""

    format: AudioFormat
    base: int = 0

    def timestamp(self, sequence: int) -> int:
        """First sample of a frame, counted from the base (RFC 3550's timestamp)."""
        return (sequence - self.base) * self.format.samples_per_frame

    def offset(self, sequence: int) -> float:
        """Seconds from the base to the start of a frame."""
        return (sequence - self.base) * FRAME_DURATION

    def sequence_at(self, timestamp: int) -> int:
        """The frame that holds a sample."""
        return self.base + timestamp // self.format.samples_per_frame
