"""The TCP door: hypercorn's HTTP/1.1 behind our own listener."""

from fallback.chunks import ChunkDoor
from fallback.listener import TcpLimits, TcpListener, TcpTally, bind_tcp

__all__ = ["ChunkDoor", "TcpLimits", "TcpListener", "TcpTally", "bind_tcp"]
