"""QUIC and HTTP/3 on aioquic's sans-I/O core, hardened; used by both ends."""

from tenuto.quic.connection import KEEP_ALIVE, Connection, ReceiveWindow
from tenuto.quic.datagrams import DatagramQueue
from tenuto.quic.http3 import MAX_FIELD_SECTION_SIZE, Http3
from tenuto.quic.reset import ResetKey

__all__ = [
    "KEEP_ALIVE",
    "MAX_FIELD_SECTION_SIZE",
    "Connection",
    "DatagramQueue",
    "Http3",
    "ReceiveWindow",
    "ResetKey",
]
