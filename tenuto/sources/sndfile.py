"""libsndfile, reading forward only. Importing this needs the extra `audio`."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

import numpy as np
import soundfile
from numpy.typing import NDArray

from tenuto.convert import decode_floats, decode_integers
from tenuto.errors import ErrorCode, RequestError, SourceError

__all__ = ["ContainerSamples", "read_data"]

# Integers of up to 16 bits, and what decodes to such, come as they are. Wider ones and floats
# are rounded by us: libsndfile scales floats by 1, 32,767 or 32,768, and some wrap around.
_WIDE = dict.fromkeys(("PCM_24", "PCM_32", "ALAC_20", "ALAC_24", "ALAC_32", "DWVW_24"), "int32")
_LOSSY = ("VORBIS", "OPUS", "MPEG_LAYER_I", "MPEG_LAYER_II", "MPEG_LAYER_III")
_KINDS = {**_WIDE, "DOUBLE": "float64", **dict.fromkeys(("FLOAT", *_LOSSY), "float32")}

# Values decoded at a time, so that whoever leaves waits for little.
_MAX_BLOCK = 32_768

_UNKNOWN_LENGTH = 2**62

# Bytes read at a time without a sample to show for it; good files need 0.1 MiB. Looking for
# the next page of an Ogg file libsndfile would read on through any hole.
_MAX_SEARCH = 16 * 1024 * 1024
_SEARCHED = f"{_MAX_SEARCH >> 20} MiB in it that hold no sound"


def read_data(
    file: BinaryIO, name: str, what: str, given_up: Callable[[], bool]
) -> tuple[int, int, str]:
    """Rate, channels and the numpy type to decode to.

    Raises `RequestError(UNSUPPORTED_AUDIO)`, and OSError.
    """
    guarded = _Guarded(file, given_up)
    try:
        with _Sound(guarded) as sound:
            empty = sound.format == "OGG" and sound.frames == 0
            found = sound.samplerate, sound.channels, _KINDS.get(sound.subtype, "int16")
    except soundfile.LibsndfileError as error:
        if guarded.failure is not None:
            raise guarded.failure from None
        problem = f"that cannot be decoded: {_reason(error)}"
    else:
        if not empty and not guarded.exhausted:
            return found
        # Not only a cut file: what libsndfile makes of one would look complete.
        problem = "without one whole page of sound"
    if guarded.exhausted:
        problem = f"with {_SEARCHED}"
    raise RequestError(
        ErrorCode.UNSUPPORTED_AUDIO,
        f"{name} is {what} {problem}",
        remedy="convert it, for example: ffmpeg -i INPUT -c:a pcm_s16le OUTPUT.wav",
    )


class ContainerSamples:
    """Decodes the samples of an open file as 16-bit ones, wherever the file stands."""

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        channels: int,
        kind: str,
        given_up: Callable[[], bool] = lambda: False,
    ) -> None:
        self.repaired = 0
        """Floats that were no number or infinite."""
        self.stray_bytes = 0
        self._name = name
        self._kind = kind
        self._channels = channels
        self._file = _Guarded(file, given_up)
        self._position = 0
        self._broken: SourceError | None = None
        try:
            self._sound = _Sound(self._file)
        except soundfile.LibsndfileError as error:
            if self._file.failure is not None:
                raise self._file.failure from None
            raise SourceError(f"{name} can no longer be decoded: {_reason(error)}") from None
        # FLAC knows its length; others guess it, or libsndfile does.
        known = self._sound.format == "FLAC" and self._sound.frames < _UNKNOWN_LENGTH
        self._claimed = self._sound.frames if known else 0

    def read(self, samples: int) -> bytes:
        """At most so many samples of all channels; nothing at the end.

        Raises `SourceError` behind the last sample that could be decoded, and OSError.
        """
        if self._broken is not None:
            raise self._broken
        most = max(1, min(samples, _MAX_BLOCK // self._channels))
        block = np.zeros((most, self._channels), self._kind)
        broken = None
        self._file.allow()
        try:
            count = self._sound.buffer_read_into(block, self._kind)
        except soundfile.LibsndfileError as error:
            count, broken = self._stumble(_reason(error))
        if self._file.failure is not None:
            raise self._file.failure
        self._position += count
        if broken is None and self._file.exhausted:
            broken = self._describe(_SEARCHED)
        if not count and self._position < self._claimed:
            broken = self._describe("the rest is missing")
        self._broken = broken
        if broken is not None and not count:
            raise broken
        return self._render(block[:count])

    def close(self) -> None:
        """Free the decoder; the file is its opener's to close."""
        self._sound.close()

    def _stumble(self, reason: str) -> tuple[int, SourceError]:
        """How many samples of this block are good: only its own position tells."""
        try:
            count = int(self._sound.tell()) - self._position
        except soundfile.LibsndfileError:
            count = 0
        return count, self._describe(reason, count)

    def _describe(self, reason: str, more: int = 0) -> SourceError:
        return SourceError(
            f"{self._name} is broken after {self._position + more} samples: {reason}",
            remedy="what could be decoded was played",
        )

    def _render(self, block: NDArray[np.generic]) -> bytes:
        match self._kind:
            case "int16":
                return block.astype("<i2").tobytes()
            case "int32":
                return decode_integers(block.astype(np.int32, copy=False))
            case _:
                decoded, repaired = decode_floats(block.astype(self._kind, copy=False))
                self.repaired += repaired
                return decoded


class _Sound(soundfile.SoundFile):  # type: ignore[misc]
    def seekable(self) -> bool:
        # SoundFile would seek to where it is after every block, which costs a lossy decoder
        # its state and the listener some samples.
        return False


class _Guarded:
    """A file for C callbacks: what they raise would go to standard error, not to us.

    It seems to end where too much is read at a time, and where nobody wants it any more:
    nothing else stops libsndfile.
    """

    def __init__(self, file: BinaryIO, given_up: Callable[[], bool]) -> None:
        self._file = file
        self._given_up = given_up
        self._left = _MAX_SEARCH
        self.exhausted = False
        self.failure: OSError | None = None
        file.seek(0)

    def allow(self) -> None:
        """As much may be read again as at the beginning."""
        self._left = _MAX_SEARCH

    def readinto(self, buffer: memoryview) -> int:
        if self._left <= 0 or self._given_up():
            self.exhausted = True
            return 0
        try:
            count: int = self._file.readinto(buffer)  # type: ignore[attr-defined]
            self._left -= count
            return count
        except OSError as error:
            self.failure = error
            return 0

    def seek(self, offset: int, whence: int = 0) -> int:
        try:
            return self._file.seek(offset, whence)
        except (OSError, ValueError):  # To before the beginning, as a header asks.
            return -1

    def tell(self) -> int:
        return self._file.tell()


def _reason(error: soundfile.LibsndfileError) -> str:
    # Some of its messages are empty, others end with a full stop.
    return str(error.error_string).strip().rstrip(".") or f"libsndfile error {error.code}"
