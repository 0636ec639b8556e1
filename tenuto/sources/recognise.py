"""What a file holds, told by its first bytes; its name's ending proves nothing."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HEAD_SIZE", "Content", "recognise"]

HEAD_SIZE = 512

_W64 = bytes.fromhex("726966662e91cf11a5d628db04c10000")

# Offset, magic bytes, what it is, and whether `tenuto.sources.containers` may try it.
_MAGIC = (
    (0, b"RIFX", "big-endian WAV (RIFX)", True),
    (0, b"ID3", "MP3 data", True),
    (0, b"fLaC", "FLAC data", True),
    (0, b"OggS", "Ogg data", True),
    (0, b".snd", "Sun audio data (AU)", True),
    (0, b"caff", "Core Audio data (CAF)", True),
    (0, _W64, "Sony Wave64 data (W64)", True),
    (8, b"AIFF", "AIFF data", True),
    (8, b"AIFC", "AIFF data", True),
    (0, b"FORM", "an IFF file that is not AIFF", False),
    (4, b"ftyp", "MP4 data", False),
    (0, b"\x1aE\xdf\xa3", "Matroska or WebM data", False),
    (0, b"0&\xb2u\x8ef\xcf\x11", "Windows Media data", False),
    (0, b"wvpk", "WavPack data", False),
    (0, b"MAC ", "Monkey's Audio data", False),
    (0, b"#!AMR", "AMR data", False),
    (0, b"\xff\xd8\xff", "a JPEG image", False),
    (0, b"\x89PNG", "a PNG image", False),
    (0, b"GIF8", "a GIF image", False),
    (0, b"%PDF", "a PDF document", False),
    (0, b"PK\x03\x04", "a ZIP archive", False),
    (0, b"\x1f\x8b", "gzip data", False),
    (0, b"RIFF", "a RIFF file that is not WAVE", False),
)


@dataclass(frozen=True, slots=True)
class Content:
    """`what` reads after "is"; `decodable` where a library of ours knows the format."""

    what: str
    decodable: bool = False


def recognise(head: bytes) -> Content:
    """Judge the first `HEAD_SIZE` bytes of a file that is no little-endian WAV."""
    if not head:
        return Content("an empty file")
    for offset, magic, what, decodable in _MAGIC:
        if head.startswith(magic, offset):
            return Content(what, decodable)
    if len(head) > 3 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0:
        # An MPEG frame header; layer 0 is ADTS, the framing of AAC.
        if not head[1] & 0x06:
            return Content("AAC data")
        if _is_mpeg_header(head):
            return Content("MP3 data", decodable=True)
    return Content("text" if _is_text(head) else "data of no known audio format")


def _is_mpeg_header(head: bytes) -> bool:
    # ISO 11172-3, 2.4.1.3: a version, a layer, a bit rate and a sampling rate that exist.
    version, bit_rate, sampling = head[1] >> 3 & 3, head[2] >> 4, head[2] >> 2 & 3
    return version != 1 and bit_rate != 15 and sampling != 3


def _is_text(head: bytes) -> bool:
    # A cut in the middle of a character is no proof against text.
    text = head.decode("utf-8", errors="ignore")
    return len(head) - len(text.encode()) < 4 and all(
        each.isprintable() or each.isspace() for each in text
    )
