"""Stored samples to 16-bit ones, however the bytes are cut."""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import NDArray

__all__ = ["Encoding", "SampleDecoder", "decode_floats", "decode_integers"]

_Floats = NDArray[np.float32] | NDArray[np.float64]


class Encoding(Enum):
    """How one sample of one channel is stored, little-endian."""

    U8 = "8-bit PCM"
    S16 = "16-bit PCM"
    S24 = "24-bit PCM"
    S32 = "32-bit PCM"
    F32 = "32-bit float"
    F64 = "64-bit float"
    ALAW = "A-law"
    MULAW = "mu-law"

    @property
    def size(self) -> int:
        """Bytes of one sample of one channel."""
        return _SIZES[self]


_SIZES = {
    Encoding.U8: 1,
    Encoding.S16: 2,
    Encoding.S24: 3,
    Encoding.S32: 4,
    Encoding.F32: 4,
    Encoding.F64: 8,
    Encoding.ALAW: 1,
    Encoding.MULAW: 1,
}


def _alaw() -> NDArray[np.int16]:
    # G.711: even bits are inverted; sign, three bits of segment, four of mantissa. A value
    # stands in the middle of its interval, hence the half step.
    code = np.arange(256) ^ 0x55
    segment, mantissa = code >> 4 & 7, code & 15
    small, large = (mantissa << 4) + 8, ((mantissa << 4) + 0x108) << np.maximum(segment - 1, 0)
    size = np.where(segment == 0, small, large)
    return np.where(code & 0x80, size, -size).astype("<i2")


def _mulaw() -> NDArray[np.int16]:
    # G.711: all bits are inverted; the bias of 33 (of 14 bits, here 132 of 16) makes every
    # segment begin at a power of two.
    code = np.arange(256) ^ 0xFF
    size = (((code & 15) << 3) + 132 << (code >> 4 & 7)) - 132
    return np.where(code & 0x80, -size, size).astype("<i2")


_TABLES = {Encoding.ALAW: _alaw(), Encoding.MULAW: _mulaw()}


class SampleDecoder:
    """Runs of stored samples in, 16-bit little-endian runs out; channels do not matter.

    Integers keep their upper 16 bits, floats are rounded half to even and clipped. Where
    fewer bits are valid than stored they are the upper ones, as WAVE has it. A stray
    fraction of a sample is carried to the next run and counted in `stray_bytes` at the end.
    """

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self.repaired = 0
        """Floats that were no number (now silence) or infinite (now full scale)."""
        self.stray_bytes = 0
        self._rest = b""

    def push(self, run: bytes) -> bytes:
        """What is complete by now."""
        if self.encoding is Encoding.S16:
            return run  # Its own stray byte is for the framer to count.
        if self._rest:
            run = self._rest + run
        size = len(run) - len(run) % self.encoding.size
        self._rest = run[size:]
        return self._decode(run[:size]) if size else b""

    def finish(self) -> None:
        """No more will come: a fraction of a sample cannot be heard."""
        self.stray_bytes += len(self._rest)
        self._rest = b""

    def _decode(self, run: bytes) -> bytes:
        match self.encoding:
            case Encoding.U8:
                return ((np.frombuffer(run, np.uint8) ^ 0x80).astype("<u2") << 8).tobytes()
            case Encoding.S24:
                return np.frombuffer(run, np.uint8).reshape(-1, 3)[:, 1:].tobytes()
            case Encoding.F32 | Encoding.F64:
                kind = "<f4" if self.encoding is Encoding.F32 else "<f8"
                decoded, repaired = decode_floats(np.frombuffer(run, kind))
                self.repaired += repaired
                return decoded
            case Encoding.ALAW | Encoding.MULAW:
                return _TABLES[self.encoding][np.frombuffer(run, np.uint8)].tobytes()
            case _:
                return decode_integers(np.frombuffer(run, "<i4"))


def decode_integers(values: NDArray[np.int32]) -> bytes:
    """The upper 16 bits of each."""
    return (values >> 16).astype("<i2").tobytes()


def decode_floats(values: _Floats) -> tuple[bytes, int]:
    """16-bit samples for floats, 1.0 being full scale, and how many were not finite.

    By our own rounding: libraries differ in the scale (32,767 or 32,768), in truncation and
    in what becomes of 1.0.
    """
    repaired = 0
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = values * 32768
        finite = np.isfinite(values)
        if not finite.all():
            repaired = int(np.count_nonzero(~finite))
            scaled[np.isnan(values)] = 0
    return np.clip(np.rint(scaled, out=scaled), -32768, 32767).astype("<i2").tobytes(), repaired
