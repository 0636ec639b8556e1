"""In which format a source is heard: its own, or as near to it as was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from tenuto.convert import Shape
from tenuto.errors import ErrorCode, RequestError
from tenuto.media import AudioFormat
from tenuto.sources.tone import MAX_CHANNELS, MAX_RATE, MIN_RATE

__all__ = ["Wanted", "check_shape", "read_wanted"]

MIN_FILE_RATE = 1_000
MAX_FILE_RATE = 768_000
MAX_FILE_CHANNELS = 255

# For rates whose 20 ms are not whole samples.
_USUAL_RATES = (8000, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 88200, 96000, 176400)

_RATE_STEP = 50
_SHOWN = 20


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


def read_wanted(request: Mapping[str, str]) -> Wanted:
    """`rate=` and `channels=`; raises `RequestError(BAD_REQUEST)` that names the parameter."""
    rate = _whole(request, "rate", MIN_RATE, MAX_RATE)
    if rate is not None and rate % _RATE_STEP:
        _refuse("rate", request["rate"], f"a number divisible by {_RATE_STEP}, such as 16000")
    return Wanted(rate, _whole(request, "channels", 1, MAX_CHANNELS))


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
    if rate % _RATE_STEP == 0:
        return rate
    return next((usual for usual in _USUAL_RATES if usual >= rate), MAX_RATE)


def _whole(request: Mapping[str, str], name: str, low: int, high: int) -> int | None:
    text = request.get(name)
    if text is None:
        return None
    # isdecimal alone would take other scripts' digits.
    if not (text.isascii() and text.isdecimal() and len(text) < _SHOWN):
        _refuse(name, text, f"a whole number {low} to {high}")
    if not low <= int(text) <= high:
        _refuse(name, text, f"{low} to {high}")
    return int(text)


def _refuse(name: str, text: str, expected: str) -> NoReturn:
    raise RequestError(
        ErrorCode.BAD_REQUEST,
        f"{name}={text[:_SHOWN]!r} cannot be used",
        remedy=f"give {expected}",
    )
