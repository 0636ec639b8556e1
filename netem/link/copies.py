"""Packets that arrive damaged, or twice."""

from netem.link.packet import Packet
from netem.link.streams import Draw

__all__ = ["Corruption"]


class Corruption:
    """Turns one bit of some packets. One draw decides whether, and which bit."""

    def __init__(self, rate: float, draw: Draw) -> None:
        self._rate = rate
        self._draw = draw
        self.corrupted = 0

    def passes(self, packet: Packet) -> Packet:
        draw = self._draw()
        if draw >= self._rate or not packet.data:
            return packet
        self.corrupted += 1
        # Below the rate the draw is as even as it was: stretched, it names a bit.
        return packet._replace(data=_with_bit_turned(packet.data, draw / self._rate))


def _with_bit_turned(data: bytes, place: float) -> bytes:
    octet, bit = divmod(min(int(place * 8 * len(data)), 8 * len(data) - 1), 8)
    return data[:octet] + bytes([data[octet] ^ (1 << bit)]) + data[octet + 1 :]
