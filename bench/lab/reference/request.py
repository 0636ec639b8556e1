"""What a reference listener asks for, as JSON on the connection's first stream."""

from __future__ import annotations

from typing import Final, TypedDict

__all__ = ["ALPN", "LARGEST_DATAGRAM_FRAME", "LARGEST_REQUEST", "Request"]

ALPN: Final = "tenuto-lab"

LARGEST_DATAGRAM_FRAME: Final = 65_536
"""Of RFC 9221's transport parameter; a packet is the narrower bound."""

LARGEST_REQUEST: Final = 1_000
"""Bytes."""


class Request(TypedDict):
    way: str
    """`datagram` or `streams`."""
    frames: int
    copies: int
    """How often a frame is sent again, each one frame time after the one before."""
