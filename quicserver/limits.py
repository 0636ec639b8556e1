"""The bounds of the QUIC door; docs/server-behaviour.md says what happens at each."""

from __future__ import annotations

from dataclasses import dataclass

from tenuto.errors import OperatorError
from tenuto.quic import KEEP_ALIVE

__all__ = ["DoorLimits"]


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """Times in seconds, sizes in bytes."""

    max_connections: int = 2000
    max_half_open: int = 500
    max_half_open_per_address: int = 64
    handshake: float = 5.0
    """From the first packet to a completed handshake."""
    idle_timeout: float = 12.0
    socket_buffer: int = 4 * 1024 * 1024
    """Asked of the kernel for each direction; what it grants is logged."""
    most_unacknowledged: int = 1024 * 1024
    """Of a stream, however much its lead and the path's round trip would allow it."""
    most_unsent: int = 16 * 1024
    """Of a stream, in wait for the peer's credit or the congestion window; one frame at least."""
    silent: float = 0.5
    """With no acknowledgement for so long and two round trips nothing more is written."""
    stalled: float = 10.0
    """A stream whose held bytes do not shrink for this long is closed, resumable."""
    farewell: float = 1.0
    """How long a NOTICE may wait for its acknowledgement before RESET_STREAM."""
    max_closed: int = 1024
    """Connections whose CONNECTION_CLOSE may have to be repeated."""
    resets_per_second: int = 100

    def __post_init__(self) -> None:
        if self.idle_timeout < 2 * KEEP_ALIVE:
            raise OperatorError(
                f"an idle time-out of {self.idle_timeout:g} s does not outlast a lost PING: "
                f"they are {KEEP_ALIVE:g} s apart",
                remedy=f"set it to {2 * KEEP_ALIVE:g} s or more",
            )
