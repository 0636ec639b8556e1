"""Bytes between who gives them in blocks and who takes them in others."""

from __future__ import annotations

__all__ = ["Fifo"]


class Fifo:
    """First in, first out. Filled only while it is too short, it holds one block too many."""

    def __init__(self) -> None:
        self._held = bytearray()

    def __len__(self) -> int:
        return len(self._held)

    def push(self, data: bytes) -> None:
        self._held += data

    def take(self, size: int) -> bytes:
        """The oldest bytes: so many, or all there are."""
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken
