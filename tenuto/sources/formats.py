"""In which format a source is heard: its own, or as near to it as was asked for."""

from __future__ import annotations

from dataclasses import dataclass

from tenuto.convert import Shape
from tenuto.errors import ErrorCode, RequestError
from tenuto.media import FRAMES_PER_SECOND, AudioFormat
from tenuto.sources.tone import MAX_RATE

__all__ = ["Wanted", "check_shape"]

MIN_FILE_RATE = 1_000
MAX_FILE_RATE = 768_000
MAX_FILE_CHANNELS = 255

# For rates whose 20 ms are not whole samples.
_USUAL_RATES = (8000, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 88200, 96000, 176400)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request asked for; None: as the source has it."""

    rate: int | None = None
    channels: int | None = None

    def of(self, shape: Shape) -> AudioFormat:
        """The format to convert to.

        A rate whose 20 ms are not whole samples becomes the usual one above. Raises
        `RequestError(UNSUPPORTED_AUDIO)` where the frames would be too large.
        """
        rate = self.rate or _playable(shape.rate)
        try:
            return AudioFormat(rate, self.channels or shape.channels)
        except RequestError as error:
            remedy = "ask for less with rate= or channels="
            raise RequestError(error.code, error.message, remedy=remedy) from None


def check_shape(shape: Shape, name: str) -> None:
    """Raises `RequestError(UNSUPPORTED_AUDIO)` for what no file of sound has."""
    if not 1 <= shape.channels <= MAX_FILE_CHANNELS:
        what = f"{shape.channels} channels"
    elif not MIN_FILE_RATE <= shape.rate <= MAX_FILE_RATE:
        what = f"a rate of {shape.rate} Hz"
    else:
        return
    raise RequestError(
        ErrorCode.UNSUPPORTED_AUDIO,
        f"{name} has {what}, if its header is true",
        remedy=f"give a file of 1 to {MAX_FILE_CHANNELS} channels and "
        f"{MIN_FILE_RATE} to {MAX_FILE_RATE} Hz",
    )


def _playable(rate: int) -> int:
    if rate % FRAMES_PER_SECOND == 0:
        return rate
    return next((usual for usual in _USUAL_RATES if usual >= rate), MAX_RATE)
