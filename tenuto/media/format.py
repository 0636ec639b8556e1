"""What the samples are: codec, rate, channels."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from tenuto.errors import ErrorCode, RequestError

__all__ = [
    "FRAMES_PER_SECOND",
    "FRAME_DURATION",
    "MAX_CHANNELS",
    "MAX_FRAME_SIZE",
    "AudioFormat",
    "Codec",
]

FRAMES_PER_SECOND = 50
FRAME_DURATION = 1 / FRAMES_PER_SECOND
"""Seconds of audio in a frame (RFC 3551 section 4.2 recommends 20 ms)."""

# A record's length stays a two-byte variable-length integer (RFC 9000 section 16), so that
# a FRAME costs 5 bytes at most; two of them are its sequence.
MAX_FRAME_SIZE = 16383 - 2

MAX_CHANNELS = 255
"""FORMAT has one byte for them."""


class Codec(IntEnum):
    """Payload encodings, by their number in FORMAT (docs/wire-format.md)."""

    PCM_S16LE = 0


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """Interleaved 16-bit little-endian PCM of `rate` samples/s and `channels` channels.

    Raises `RequestError` for a rate whose 20 ms are not whole samples (11,025 Hz) and for
    a frame that would not fit a record.
    """

    rate: int = 16000
    channels: int = 1
    codec: Codec = Codec.PCM_S16LE

    def __post_init__(self) -> None:
        if self.rate <= 0 or self.rate % FRAMES_PER_SECOND:
            raise RequestError(
                ErrorCode.UNSUPPORTED_AUDIO,
                f"20 ms at {self.rate} Hz are not whole samples",
                remedy="resample to a rate divisible by 50, such as 16000, 22050 or 48000",
            )
        if not 1 <= self.channels <= MAX_CHANNELS or self.frame_size > MAX_FRAME_SIZE:
            raise RequestError(
                ErrorCode.UNSUPPORTED_AUDIO,
                f"{self.channels} channels at {self.rate} Hz make frames of "
                f"{self.frame_size} bytes; 1 to {MAX_CHANNELS} channels and "
                f"{MAX_FRAME_SIZE} bytes fit a record",
                remedy="mix down or lower the rate",
            )

    @property
    def samples_per_frame(self) -> int:
        """Samples per channel in one frame."""
        return self.rate // FRAMES_PER_SECOND

    @property
    def bytes_per_sample(self) -> int:
        """Bytes of one sample of all channels (a WAV header's block align)."""
        return 2 * self.channels

    @property
    def frame_size(self) -> int:
        """Bytes in one full frame."""
        return self.samples_per_frame * self.bytes_per_sample

    @property
    def bytes_per_second(self) -> int:
        return self.rate * self.bytes_per_sample
