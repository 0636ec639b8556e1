import random
import struct

import numpy as np
import pytest

from tenuto.convert import Encoding, SampleDecoder, decode_floats, decode_integers

SEED = 711
CUTS = (1, 2, 3, 7, 1697, 4063, 65537)


def decode(encoding: Encoding, stored: bytes) -> bytes:
    decoder = SampleDecoder(encoding)
    decoded = decoder.push(stored)
    decoder.finish()
    assert decoder.stray_bytes == 0
    return decoded


def words(*samples: int) -> bytes:
    return struct.pack(f"<{len(samples)}h", *samples)


@pytest.mark.parametrize(
    ("encoding", "stored", "expected"),
    [
        (Encoding.U8, bytes([0, 1, 127, 128, 129, 255]), (-32768, -32512, -256, 0, 256, 32512)),
        (Encoding.S16, words(-32768, -1, 0, 32767), (-32768, -1, 0, 32767)),
        # 24 bits: -1 and 255 lose their lower byte downwards, never rounded.
        (Encoding.S24, b"\xff\xff\xff\xff\0\0\xff\xff\x7f\0\0\x80", (-1, 0, 32767, -32768)),
        (Encoding.S32, struct.pack("<4i", -1, 65535, 2**31 - 1, -(2**31)), (-1, 0, 32767, -32768)),
        # 12 bits of 16 and 20 of 24 lie at the top: nothing special.
        (Encoding.S24, b"\xf0\xff\x7f", (32767,)),
        # G.711 tables 1a and 2a: ends and middle, in steps of 16 and 8 of 65,536.
        (Encoding.ALAW, b"\xd5\x55\xaa\x2a\x80", (8, -8, 32256, -32256, 5504)),
        (Encoding.MULAW, b"\xff\x7f\x80\x00\xf0", (0, 0, 32124, -32124, 120)),
    ],
    ids=["u8", "s16", "s24", "s32", "s20", "alaw", "mulaw"],
)
def test_known_samples(encoding: Encoding, stored: bytes, expected: tuple[int, ...]) -> None:
    assert struct.unpack(f"<{len(expected)}h", decode(encoding, stored)) == expected


@pytest.mark.parametrize(("encoding", "code"), [(Encoding.F32, "f"), (Encoding.F64, "d")])
def test_floats_are_rounded_half_to_even_and_clipped(encoding: Encoding, code: str) -> None:
    steps = [0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 0.49, 32767.4, 32767.5, 32768, 1e9, -32768.5, -1e9]
    stored = struct.pack(f"<{len(steps)}{code}", *(step / 32768 for step in steps))
    expected = (0, 0, 2, 2, 0, -2, 0, 32767, 32767, 32767, 32767, -32768, -32768)
    assert struct.unpack(f"<{len(steps)}h", decode(encoding, stored)) == expected


@pytest.mark.parametrize(("encoding", "code"), [(Encoding.F32, "f"), (Encoding.F64, "d")])
def test_what_is_no_number_is_repaired_and_counted(encoding: Encoding, code: str) -> None:
    values = [0.5, float("nan"), float("inf"), -float("inf"), -0.5, 3e38]
    decoder = SampleDecoder(encoding)
    decoded = decoder.push(struct.pack(f"<6{code}", *values))
    assert struct.unpack("<6h", decoded) == (16384, 0, 32767, -32768, -16384, 32767)
    assert decoder.repaired == 3
    assert decode_floats(np.array([np.nan, 1e300]))[1] == 1


def test_wide_integers_keep_their_upper_bits() -> None:
    values = np.array([0x12345678, -1, -(2**31)], np.int32)
    assert decode_integers(values) == words(0x1234, -1, -32768)


def stored(encoding: Encoding, samples: int) -> bytes:
    rng = random.Random(SEED)
    if encoding in (Encoding.F32, Encoding.F64):
        code = "f" if encoding is Encoding.F32 else "d"
        return struct.pack(f"<{samples}{code}", *(rng.gauss(0, 0.6) for _ in range(samples)))
    return rng.randbytes(samples * encoding.size)


@pytest.mark.parametrize("encoding", Encoding)
def test_cuts_change_nothing_and_a_stray_byte_is_counted(encoding: Encoding) -> None:
    data = stored(encoding, 20_000)
    whole = decode(encoding, data)
    assert len(whole) == 40_000
    rng = random.Random(SEED)
    cuts = [(size, [size] * (len(data) // size + 1)) for size in CUTS]
    cuts.append((0, [rng.randint(0, 9000) for _ in range(len(data) // 3000)]))
    for size, lengths in cuts:
        if size and size < 7 and encoding not in (Encoding.S24, Encoding.ALAW):
            lengths = lengths[:4000]  # Bytes one by one are slow and all alike.
        decoder, parts, position = SampleDecoder(encoding), [], 0
        for length in lengths:
            parts.append(decoder.push(data[position : position + length]))
            position += length
        parts += [decoder.push(data[position:]), decoder.push(b"\x55")]
        decoder.finish()
        stray = 0 if encoding.size == 1 or encoding is Encoding.S16 else 1
        assert b"".join(parts)[: len(whole)] == whole, f"cuts of {size}, seed {SEED}"
        assert decoder.stray_bytes == stray
