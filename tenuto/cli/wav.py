"""A WAV file of 16-bit PCM: 44 bytes of header, sizes put in when they are known."""

from __future__ import annotations

import struct
from typing import BinaryIO

from tenuto.media import AudioFormat

__all__ = ["HEADER_SIZE", "WavWriter", "wav_header"]

HEADER_SIZE = 44

MAX_SIZE = 0xFFFFFFFF
"""A RIFF size is 32 bits; a stream whose length is not known yet says this."""


def wav_header(audio: AudioFormat, data_size: int | None) -> bytes:
    """The header for `data_size` bytes of samples; None, or too many, means unknown."""
    known = data_size is not None and data_size + HEADER_SIZE - 8 <= MAX_SIZE
    size = data_size if known and data_size is not None else MAX_SIZE
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        min(size + HEADER_SIZE - 8, MAX_SIZE),
        b"WAVE",
        b"fmt ",
        16,
        1,  # WAVE_FORMAT_PCM
        audio.channels,
        audio.rate,
        audio.bytes_per_second,
        audio.bytes_per_sample,
        16,
        b"data",
        size,
    )


class WavWriter:
    """Writes to an open file, which the caller closes after `finish`.

    Where the file cannot seek (a pipe) the header keeps saying "unknown", which players of
    streams accept.
    """

    def __init__(self, file: BinaryIO, audio: AudioFormat) -> None:
        self._file = file
        self._audio = audio
        self._size = 0
        file.write(wav_header(audio, None))

    def write(self, samples: bytes) -> None:
        self._size += len(samples)
        self._file.write(samples)

    def finish(self) -> None:
        """Put the true sizes into the header. 16-bit samples need no padding byte."""
        if self._file.seekable():
            self._file.seek(0)
            self._file.write(wav_header(self._audio, self._size))
