"""How far ahead of what it gives away a feed has to read, tried out beforehand."""

from __future__ import annotations

from tenuto.cli.device import DeviceShape
from tenuto.convert import Converter
from tenuto.media import FRAME_DURATION, AudioFormat

__all__ = ["read_ahead"]

_TRIED = 2.0


def read_ahead(audio: AudioFormat, shape: DeviceShape, size: int) -> float:
    """The most seconds held when another frame must be read, for blocks of `size` bytes.

    A resampling filter keeps some of a frame back, and gives out several at once then. Without
    foresight the first reads would each move what the player is told, and be corrected audibly.
    """
    converter = Converter(audio, shape)
    silence = bytes(audio.frame_size)
    block = size / (shape.rate * shape.bytes_per_sample)
    there, held, most, tried = 0, 0.0, 0.0, 0.0
    while tried < max(_TRIED, 20 * block):
        while there < size:
            most = max(most, held)
            there += len(converter.push(silence))
            held += FRAME_DURATION
        there -= size
        held -= block
        tried += block
    return most
