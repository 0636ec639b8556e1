"""RIFF/WAVE headers: where the samples are and what they are, or why they cannot play."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import BinaryIO

from tenuto.errors import ErrorCode, RequestError
from tenuto.media import AudioFormat

__all__ = ["WavData", "read_header"]

_PCM, _EXTENSIBLE = 0x0001, 0xFFFE
_TAGS = {
    0x0002: "Microsoft ADPCM",
    0x0003: "IEEE float",
    0x0006: "A-law",
    0x0007: "mu-law",
    0x0011: "IMA ADPCM",
    0x0050: "MPEG audio",
    0x0055: "MP3",
    0x00FF: "AAC",
}
# WAVE_FORMAT_EXTENSIBLE names its codec by a GUID: two bytes of tag, then these.
_SUBFORMAT = bytes.fromhex("000000001000800000aa00389b71")
# A writer into a pipe cannot go back to fill in the length: it leaves one of these.
_UNKNOWN_SIZES = (0, 0xFFFFFFFF)
# Far more chunks than any recorder writes; a hostile file of empty ones ends here.
_MAX_CHUNKS = 256

_MAGIC = (
    (0, b"RF64", "64-bit WAV (RF64)"),
    (0, b"RIFX", "big-endian WAV (RIFX)"),
    (0, b"ID3", "MP3 data"),
    (0, b"fLaC", "FLAC data"),
    (0, b"OggS", "Ogg data"),
    (4, b"ftyp", "MP4 data"),
    (0, b"FORM", "AIFF data"),
    (0, b".snd", "Sun audio data"),
    (0, b"caff", "Core Audio data"),
    (0, b"\x1aE\xdf\xa3", "Matroska or WebM data"),
    (0, b"RIFF", "a RIFF file that is not WAVE"),
)


@dataclass(frozen=True, slots=True)
class WavData:
    """Samples at `offset` in the file; `size` bytes of them, or None to the file's end."""

    format: AudioFormat
    offset: int
    size: int | None


def read_header(file: BinaryIO, name: str) -> WavData:
    """Find the samples; raises `RequestError(UNSUPPORTED_AUDIO)` that says what it found.

    `name` stands for the file in the error. Reads headers only, from the start.
    """
    head = file.read(12)
    if head[:4] != b"RIFF" or head[8:12] != b"WAVE":
        raise _refusal(name, _recognise(head + file.read(500)))
    riff_size = struct.unpack_from("<I", head, 4)[0]
    format: AudioFormat | None = None
    for _ in range(_MAX_CHUNKS):
        header = file.read(8)
        if len(header) < 8:
            break
        tag, size = struct.unpack("<4sI", header)
        start = file.tell()
        if tag == b"fmt ":
            format = _parse_format(file.read(min(size, 40)), name)
        elif tag == b"data":
            if format is None:
                raise _refusal(name, "a WAV file without a format before its data")
            # A zero is true only where the RIFF length says that more chunks follow.
            true_zero = riff_size not in _UNKNOWN_SIZES and 8 + riff_size > start
            unknown = size in _UNKNOWN_SIZES and not (size == 0 and true_zero)
            return WavData(format, start, None if unknown else size)
        file.seek(start + size + size % 2)  # Chunks are padded to an even length.
    raise _refusal(name, "a WAV file without a data chunk")


def _parse_format(body: bytes, name: str) -> AudioFormat:
    if len(body) < 16:
        raise _refusal(name, "a WAV file with a short format chunk")
    tag, channels, rate, _, align, bits = struct.unpack_from("<HHIIHH", body)
    if tag == _EXTENSIBLE and len(body) >= 40 and body[26:40] == _SUBFORMAT:
        tag = struct.unpack_from("<H", body, 24)[0]
    if tag != _PCM:
        raise _refusal(name, _TAGS.get(tag, f"WAV data of format 0x{tag:04X}"))
    if bits != 16:
        raise _refusal(name, f"{bits}-bit PCM")
    if align != 2 * channels:
        raise _refusal(name, f"PCM of {channels} channels in blocks of {align} bytes")
    return AudioFormat(rate, channels)


def _recognise(head: bytes) -> str:
    if not head:
        return "an empty file"
    for offset, magic, found in _MAGIC:
        if head.startswith(magic, offset):
            return found
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0:
        # An MPEG frame header; layer 0 is ADTS, the framing of AAC.
        return "MP3 data" if head[1] & 0x06 else "AAC data"
    # A cut in the middle of a character is no proof against text.
    text = head.decode("utf-8", errors="ignore")
    if len(head) - len(text.encode()) < 4 and all(c.isprintable() or c.isspace() for c in text):
        return "text"
    return "data of no known audio format"


def _refusal(name: str, found: str) -> RequestError:
    return RequestError(
        ErrorCode.UNSUPPORTED_AUDIO,
        f"{name} is {found}; 16-bit PCM WAV can be played",
        remedy="convert it, for example: ffmpeg -i INPUT -c:a pcm_s16le OUTPUT.wav",
    )
