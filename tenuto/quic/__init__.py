"""QUIC and HTTP/3 on aioquic's sans-I/O core, hardened; used by both ends."""

from tenuto.quic.connection import MAX_FIELD_SECTION_SIZE, Connection, Http3, ReceiveWindow
from tenuto.quic.datagrams import DatagramQueue

__all__ = ["MAX_FIELD_SECTION_SIZE", "Connection", "DatagramQueue", "Http3", "ReceiveWindow"]
