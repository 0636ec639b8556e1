"""Files and pipes have one format from beginning to end; a stream may have several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenuto.errors import OperatorError, RequestError
from tenuto.media import AudioFormat

if TYPE_CHECKING:
    from tenuto.convert import Converter

__all__ = ["Conform"]


class Conform:
    """Samples of any formats in, all of the first one's out."""

    def __init__(self, audio: AudioFormat) -> None:
        self._audio = audio
        self._source = audio
        self._converter: Converter | None = None

    def push(self, samples: bytes, audio: AudioFormat) -> bytes:
        """Raises `OperatorError` where a rate cannot be converted here."""
        before = b""
        if audio != self._source:
            before = self.finish()
            self._converter = self._convert(audio)
            self._source = audio
        if self._converter is not None:
            samples = self._converter.push(samples)
        return before + samples

    def finish(self) -> bytes:
        """What is still to come of the format so far."""
        converter, self._converter = self._converter, None
        self._source = self._audio
        return b"" if converter is None else converter.finish()

    def _convert(self, audio: AudioFormat) -> Converter | None:
        if audio == self._audio:
            return None
        from tenuto.convert import Converter  # it takes its time to load, and few need it

        try:
            return Converter(audio, self._audio)
        except RequestError:
            raise OperatorError(
                f"the stream changes from {_named(self._audio)} to {_named(audio)}, and soxr, "
                "which converts rates, is not installed",
                remedy="pip install 'tenuto[audio]'; what came before the change is kept",
            ) from None


def _named(audio: AudioFormat) -> str:
    return f"{audio.rate} Hz, {audio.channels} channel{'s' if audio.channels > 1 else ''}"
