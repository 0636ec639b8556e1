"""Packets that know their number, also with a bit turned."""

import pytest

from netem.measure.numbering import SMALLEST, Numbered, pack, unpack


@pytest.mark.parametrize("size", [SMALLEST, 100, 1472])
def test_a_packet_has_its_size_and_tells_its_number(size: int) -> None:
    payload = pack(7, 123_456, size)
    assert len(payload) == size
    assert unpack(payload) == Numbered(7, 123_456, True)


def test_any_one_bit_turned_is_noticed_and_the_number_survives() -> None:
    payload = pack(7, 123_456, 100)
    for bit in range(len(payload) * 8):
        damaged = bytearray(payload)
        damaged[bit // 8] ^= 1 << bit % 8
        assert unpack(bytes(damaged)) == Numbered(7, 123_456, False)


def test_what_is_no_packet_of_ours() -> None:
    assert unpack(b"") is None
    assert unpack(bytes(100)) is None
    assert unpack(pack(1, 2, 100)[: SMALLEST - 1]) is None
