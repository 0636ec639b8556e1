"""WAV files written by hand, byte by byte: every kind a recorder or a pipe has left behind."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

__all__ = ["chunk", "encode", "extensible", "fmt", "riff", "signal", "wav"]

Floats = NDArray[np.float64]

TAGS = {"alaw": 6, "mulaw": 7, "f32": 3, "f64": 3}
BITS = {"u8": 8, "s16": 16, "s24": 24, "s32": 32, "f32": 32, "f64": 64, "alaw": 8, "mulaw": 8}

SEED = 2026


def signal(rate: int = 48000, channels: int = 1, seconds: float = 0.3) -> Floats:
    """Tones and seeded noise, of shape (samples, channels), beyond full scale here and there."""
    count = round(rate * seconds)
    time = np.arange(count)[:, None] / rate
    pitch = 220 * (1 + np.arange(channels))[None, :]
    noise = np.random.default_rng(SEED).normal(0, 0.2, (count, channels))
    return np.asarray(np.sin(2 * np.pi * pitch * time) * 0.6 + noise)


def encode(kind: str, values: Floats) -> bytes:
    """Samples as a file of that kind stores them. Companded ones are codes of any value."""
    if kind in ("alaw", "mulaw", "u8"):
        return np.random.default_rng(SEED).integers(0, 256, values.size, np.uint8).tobytes()
    if kind in ("f32", "f64"):
        return values.astype("<f4" if kind == "f32" else "<f8").tobytes()
    whole = np.clip(np.rint(values * 2**31), -(2**31), 2**31 - 1).astype("<i4")
    stored = whole.reshape(-1, 1).view(np.uint8).reshape(-1, 4)
    return stored[:, 4 - BITS[kind] // 8 :].tobytes()


def chunk(tag: bytes, body: bytes, size: int | None = None, *, pad: bool = True) -> bytes:
    """A chunk that may lie about its size or forget its padding."""
    length = struct.pack("<I", len(body) if size is None else size)
    return tag + length + body + b"\0" * (pad and len(body) % 2)


def fmt(kind: str = "s16", rate: int = 48000, channels: int = 1, **other: int) -> bytes:
    """A plain format chunk; `tag`, `bits` and `align` may contradict the rest."""
    bits = other.get("bits", BITS[kind])
    align = other.get("align", channels * (BITS[kind] // 8))
    tag = other.get("tag", TAGS.get(kind, 1))
    body = struct.pack("<HHIIHH", tag, channels, rate, rate * align & 0xFFFFFFFF, align, bits)
    return chunk(b"fmt ", body)


def extensible(kind: str, rate: int, channels: int, valid: int | None = None) -> bytes:
    """A WAVE_FORMAT_EXTENSIBLE chunk with fewer valid bits than stored, if told so."""
    bits = BITS[kind]
    align = channels * bits // 8
    mask = {1: 4, 2: 3, 6: 0x3F}[channels]
    body = struct.pack("<HHIIHH", 0xFFFE, channels, rate, rate * align, align, bits)
    body += struct.pack("<HHI", 22, bits if valid is None else valid, mask)
    guid = struct.pack("<H", TAGS.get(kind, 1)) + bytes.fromhex("000000001000800000aa00389b71")
    return chunk(b"fmt ", body + guid)


def riff(*chunks: bytes, size: int | None = None, tag: bytes = b"RIFF") -> bytes:
    """The file around the chunks."""
    body = b"WAVE" + b"".join(chunks)
    return tag + struct.pack("<I", len(body) if size is None else size) + body


def wav(kind: str = "s16", rate: int = 48000, channels: int = 1) -> bytes:
    """An orderly file of a third of a second."""
    data = encode(kind, signal(rate, channels))
    fact = [chunk(b"fact", struct.pack("<I", len(data)))] if kind in TAGS else []
    return riff(fmt(kind, rate, channels), *fact, chunk(b"data", data))
