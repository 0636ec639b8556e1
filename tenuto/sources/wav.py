"""RIFF/WAVE and RF64: where the samples are and what they are, or why they cannot play."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import BinaryIO, NoReturn

from tenuto.convert import Encoding, SampleDecoder
from tenuto.errors import ErrorCode, RequestError

__all__ = [
    "HEADERS",
    "KNOWN_CHUNKS",
    "WavData",
    "WavSamples",
    "is_wav",
    "padding",
    "read_header",
    "refuse_file",
]

HEADERS = frozenset((b"RIFF", b"RF64", b"BW64"))
"""What a WAV file begins with."""

KNOWN_CHUNKS = frozenset(
    b"fmt |data|LIST|fact|bext|JUNK|junk|PAD |FLLR|cue |smpl|inst|PEAK|iXML|id3 |ID3 |"
    b"axml|umid|chna|cart|levl|link|plst|acid|strc|afsp|DISP|_PMX|minf|elm1|regn|ds64".split(b"|")
)
"""The names of chunks that writers of WAV are known to use."""

_EXTENSIBLE = 0xFFFE
_TAGS = {
    0x0002: "Microsoft ADPCM",
    0x0011: "IMA ADPCM",
    0x0031: "GSM 6.10",
    0x0050: "MPEG audio",
    0x0055: "MP3",
    0x00FF: "AAC",
}
# By bytes of one sample of one channel. PCM of up to 8 bits is unsigned.
_PCM_ENCODINGS = {1: Encoding.U8, 2: Encoding.S16, 3: Encoding.S24, 4: Encoding.S32}
_FLOAT_ENCODINGS = {4: Encoding.F32, 8: Encoding.F64}
# WAVE_FORMAT_EXTENSIBLE names its codec by a GUID: two bytes of tag, then these.
_SUBFORMAT = bytes.fromhex("000000001000800000aa00389b71")
# A writer into a pipe cannot go back to fill in the length: it leaves one of these, or
# something near 2 GiB, which the end of the file cuts short like any other lie.
_UNKNOWN_SIZES = (0, 0xFFFFFFFF)
# RF64 (EBU Tech 3306) says the true length in a chunk of its own.
_IN_DS64 = 0xFFFFFFFF
# Chunks, or another file where they are glued together.
_KNOWN = KNOWN_CHUNKS | HEADERS
# Far more chunks than any recorder writes; a hostile file of empty ones ends here.
_MAX_CHUNKS = 256


@dataclass(frozen=True, slots=True)
class WavData:
    """Samples at `offset` in the file; `size` bytes of them, or None to the file's end."""

    rate: int
    channels: int
    encoding: Encoding
    offset: int
    size: int | None

    @property
    def sample_size(self) -> int:
        """Stored bytes of one sample of all channels."""
        return self.encoding.size * self.channels


class WavSamples:
    """Reads the samples as 16-bit ones; `file` is anywhere."""

    def __init__(self, file: BinaryIO, data: WavData) -> None:
        self._file = file
        self._data = data
        self._left = data.size
        self._decoder = SampleDecoder(data.encoding)
        file.seek(data.offset)

    def read(self, samples: int) -> bytes:
        """At most so many samples of all channels; nothing at the end. Raises OSError."""
        size = samples * self._data.sample_size
        decoded = b""
        while not decoded:
            run = self._file.read(size if self._left is None else min(size, self._left))
            if not run:
                self._decoder.finish()
                return b""
            if self._left is not None:
                self._left -= len(run)
            decoded = self._decoder.push(run)
        return decoded

    def leave_out(self, samples: int) -> None:
        """Go on behind so many more samples of all channels, or at the end."""
        size = samples * self._data.sample_size
        if self._left is not None:
            size = min(size, self._left)
            self._left -= size
        self._file.seek(size, os.SEEK_CUR)

    @property
    def repaired(self) -> int:
        """Floats that were no number or infinite."""
        return self._decoder.repaired

    @property
    def stray_bytes(self) -> int:
        """Behind the last whole sample of one channel; 16-bit ones are not looked at."""
        return self._decoder.stray_bytes

    def close(self) -> None:
        """The file is its opener's to close."""


def is_wav(head: bytes) -> bool:
    """Whether a file that begins so is for `read_header`."""
    return head[:4] in HEADERS and head[8:12] == b"WAVE"


def read_header(file: BinaryIO, name: str) -> WavData:
    """Find the samples; raises `RequestError(UNSUPPORTED_AUDIO)` that says what it found.

    `name` stands for the file in the error. Reads headers only, from the start.
    """
    file.seek(0)
    riff_size = struct.unpack_from("<4sI", file.read(12))[1]
    shape: tuple[int, int, Encoding] | None = None
    long_size: int | None = None
    for _ in range(_MAX_CHUNKS):
        header = file.read(8)
        if len(header) < 8:
            break
        tag, size = struct.unpack("<4sI", header)
        start = file.tell()
        if tag == b"fmt ":
            shape = _parse_format(file.read(min(size, 40)), name)
        elif tag == b"ds64":
            long_size = _parse_long_size(file.read(min(size, 16)))
        elif tag == b"data":
            if shape is None:
                refuse_file(name, "a WAV file without a format before its data")
            return WavData(*shape, start, _data_size(size, long_size, riff_size, start))
        _seek_next(file, start + size)
    refuse_file(name, "a WAV file without a data chunk")


def _seek_next(file: BinaryIO, end: int) -> None:
    """To the next chunk: behind a byte of padding, unless the writer forgot it."""
    file.seek(end)
    if end % 2:
        file.seek(end + padding(file.read(5)))


def padding(near: bytes) -> int:
    """How many bytes of padding follow a chunk of odd size: none where the writer forgot it.

    `near` is what stands behind the chunk, 5 bytes of it.
    """
    forgotten = near[:4] in _KNOWN and near[1:5] not in _KNOWN
    return 0 if forgotten else 1


def _data_size(size: int, long_size: int | None, riff_size: int, start: int) -> int | None:
    if size == _IN_DS64 and long_size:
        return long_size
    # A zero is true only where the RIFF length says that more chunks follow.
    true_zero = riff_size not in _UNKNOWN_SIZES and 8 + riff_size > start
    unknown = size in _UNKNOWN_SIZES and not (size == 0 and true_zero)
    return None if unknown else size


def _parse_long_size(body: bytes) -> int | None:
    return struct.unpack_from("<Q", body, 8)[0] if len(body) >= 16 else None


def _parse_format(body: bytes, name: str) -> tuple[int, int, Encoding]:
    if len(body) < 16:
        refuse_file(name, "a WAV file with a short format chunk")
    tag, channels, rate, _, align, bits = struct.unpack_from("<HHIIHH", body)
    if tag == _EXTENSIBLE and len(body) >= 40 and body[26:40] == _SUBFORMAT:
        tag = struct.unpack_from("<H", body, 24)[0]
    return rate, channels, _find_encoding(tag, channels, align, bits, name)


def _find_encoding(tag: int, channels: int, align: int, bits: int, name: str) -> Encoding:
    size = (bits + 7) // 8
    encoding: Encoding | None
    match tag:
        case 0x0001:
            encoding, what = _PCM_ENCODINGS.get(size), f"{bits}-bit PCM"
        case 0x0003:
            encoding, what = _FLOAT_ENCODINGS.get(size), f"{bits}-bit float"
        case 0x0006:
            encoding, what = Encoding.ALAW, "A-law"
        case 0x0007:
            encoding, what = Encoding.MULAW, "mu-law"
        case _:
            encoding, what = None, f"{_TAGS.get(tag, f'data of format 0x{tag:04X}')}"
    if encoding is None:
        refuse_file(name, f"a WAV file of {what}")
    if align != channels * encoding.size:
        refuse_file(name, f"a WAV file of {what}, {channels} channels in blocks of {align} bytes")
    return encoding


def refuse_file(name: str, found: str) -> NoReturn:
    """What it is instead, and what to do."""
    raise RequestError(
        ErrorCode.UNSUPPORTED_AUDIO,
        f"{name} is {found}, which cannot be played",
        remedy="convert it, for example: ffmpeg -i INPUT -c:a pcm_s16le OUTPUT.wav",
    )
