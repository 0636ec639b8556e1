"""How much of a TLS connection its peer has acknowledged, as Linux tells."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
from typing import NamedTuple

__all__ = ["CountingWriter", "Meter", "Standing", "measures"]

_TCP_INFO = struct.Struct("=68xI48xQ16xI")
"""Of `struct tcp_info`: tcpi_rtt in microseconds, tcpi_bytes_acked (RFC 4898) and
tcpi_notsent_bytes.
"""

_RECORD = 16384
_RECORD_OVERHEAD = 22
"""Bytes: a TLS 1.3 record's header, its content type and its tag (RFC 8446 section 5.2)."""


def measures() -> bool:
    """Does this system tell what a peer has acknowledged?"""
    return sys.platform == "linux"


class Standing(NamedTuple):
    """Bytes on the wire of one connection, counted from its first answer."""

    acknowledged: int
    unacknowledged: int
    """Wherever they are: in this process, in the kernel or on the way."""
    unsent: int
    """Those of them that wait in the kernel for the peer's window or the congestion's."""
    rtt: float
    """Seconds, smoothed."""


class Meter:
    """Counts what is written above TLS as it will look below it.

    What event loops, TLS and the kernel hold between the two is all that the peer has not
    acknowledged, so none of their buffers has to be asked.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.written = 0
        self._connection = connection
        self._before = 0

    def count(self, size: int) -> None:
        """So many bytes are about to be given to TLS in one piece."""
        if not self.written:
            # The handshake and its tickets have left by now, or wait in the kernel.
            with contextlib.suppress(OSError):
                self._before = self._read()[0] + self._queued()
        self.written += size + _RECORD_OVERHEAD * -(-size // _RECORD)

    def read(self) -> Standing:
        """Raises `OSError` once the connection is closed."""
        total, unsent, rtt = self._read()
        # What TLS sends of its own accord, such as a new key, is not counted.
        self._before = max(self._before, total - self.written)
        acknowledged = total - self._before
        return Standing(acknowledged, self.written - acknowledged, unsent, rtt)

    def in_process(self, standing: Standing) -> int:
        """How much of what is not acknowledged has not even reached the kernel."""
        if not standing.unacknowledged:
            return 0
        return max(0, standing.unacknowledged - self._queued())

    def settled(self) -> bool:
        """Is nothing under way, whatever was counted? Then the count begins anew."""
        if self._queued():
            return False
        self._before = self._read()[0] - self.written
        return True

    def _read(self) -> tuple[int, int, float]:
        info = self._connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        rtt, acknowledged, unsent = _TCP_INFO.unpack(info)
        return acknowledged, unsent, rtt / 1e6

    def _queued(self) -> int:
        import fcntl  # not there on Windows
        import termios

        answer = fcntl.ioctl(self._connection.fileno(), termios.TIOCOUTQ, bytes(4))
        return int.from_bytes(answer, sys.byteorder)


class CountingWriter(asyncio.StreamWriter):
    """A writer whose meter sees every byte; None where there is nothing to read it with."""

    meter: Meter | None = None

    def start_meter(self, connection: socket.socket) -> None:
        if measures():
            self.meter = Meter(connection)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.meter is not None:
            self.meter.count(len(data))
        super().write(data)
