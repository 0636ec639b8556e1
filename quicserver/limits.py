"""The bounds of the QUIC door; docs/server-behaviour.md says what happens at each."""

from __future__ import annotations

from dataclasses import dataclass

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
    least_unacknowledged: int = 64 * 1024
    """Unacknowledged bytes any stream may hold; paced streams scale with their rate."""
    most_unacknowledged: int = 1024 * 1024
    stalled: float = 10.0
    """A stream whose held bytes do not shrink for this long is closed, resumable."""
    farewell: float = 1.0
    """How long a NOTICE may wait for its acknowledgement before RESET_STREAM."""
