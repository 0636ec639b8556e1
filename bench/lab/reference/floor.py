"""NewReno whose window never falls below a floor, by the door that aioquic has for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from aioquic.quic.congestion.base import register_congestion_control
from aioquic.quic.congestion.reno import RenoCongestionControl
from aioquic.quic.packet_builder import QuicSentPacket

__all__ = ["FLOOR", "NAME", "FlooredReno"]

FLOOR: Final = 32 * 1024
"""Bytes: 0.8 s of 16 kHz PCM."""

NAME: Final = "reno-floor"


class FlooredReno(RenoCongestionControl):
    def __init__(self, *, max_datagram_size: int) -> None:
        super().__init__(max_datagram_size=max_datagram_size)
        self._raise()

    def on_packets_lost(self, *, now: float, packets: Iterable[QuicSentPacket]) -> None:
        super().on_packets_lost(now=now, packets=packets)
        self._raise()

    def on_persistent_congestion(self) -> None:
        super().on_persistent_congestion()
        self._raise()

    def _raise(self) -> None:
        self.congestion_window = max(self.congestion_window, FLOOR)


register_congestion_control(NAME, FlooredReno)
