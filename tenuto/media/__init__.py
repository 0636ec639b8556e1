"""Audio as values: its format, its 20 ms frames and its sample clock. Pure."""

from tenuto.media.clock import SampleClock
from tenuto.media.format import FRAME_DURATION, FRAMES_PER_SECOND, AudioFormat, Codec
from tenuto.media.frame import Frame
from tenuto.media.framer import Framer, Piece

__all__ = [
    "FRAMES_PER_SECOND",
    "FRAME_DURATION",
    "AudioFormat",
    "Codec",
    "Frame",
    "Framer",
    "Piece",
    "SampleClock",
]
