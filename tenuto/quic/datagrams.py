"""DATAGRAM frames waiting to be sent, bounded by number and age (RFC 9221)."""

from __future__ import annotations

from collections import deque

__all__ = ["DatagramQueue"]


class DatagramQueue(deque[bytes]):
    """The queue that aioquic sends from, which drops its oldest instead of growing.

    Expired audio is never sent: `expire` removes what has waited longer than `max_age`
    seconds. `dropped` counts both kinds.
    """

    def __init__(self, *, most: int = 64, max_age: float = 0.200) -> None:
        super().__init__()
        self.dropped = 0
        self._most = most
        self._max_age = max_age
        self._queued_at: deque[float] = deque()

    def put(self, data: bytes, now: float) -> None:
        if len(self) >= self._most:
            self.popleft()
            self.dropped += 1
        self.append(data)
        self._queued_at.append(now)

    def popleft(self) -> bytes:
        self._queued_at.popleft()
        return super().popleft()

    def expire(self, now: float) -> None:
        while self._queued_at and now - self._queued_at[0] > self._max_age:
            self.popleft()
            self.dropped += 1
