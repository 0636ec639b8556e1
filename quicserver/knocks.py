"""Datagrams that would open a connection with a server that takes none any more."""

from __future__ import annotations

import base64
import socket
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

__all__ = ["Knock", "Knocks"]

MAX_KNOCKS = 64
"""Datagrams that a draining server keeps for its successor; the newest count."""

MAX_KNOCK_AGE = 5.0
"""Seconds after which nobody may be waiting for an answer any more."""

Address = tuple[str, int] | tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class Knock:
    """One datagram, who sent it, and the name of the socket that it came to."""

    data: bytes
    sender: Address
    host: str

    def to_json(self) -> list[object]:
        return [base64.b64encode(self.data).decode(), list(self.sender), self.host]

    @classmethod
    def from_json(cls, data: str, sender: Sequence[object], host: str) -> Knock:
        """Raises `ValueError` or `TypeError` for what `to_json` has not made."""
        name, port, *scope = sender
        full = (str(name), int(str(port)), *(int(str(each)) for each in scope))
        return cls(base64.b64decode(data), cast("Address", full), str(host))


class Knocks:
    """The last of them, in the order they came."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, Knock]] = deque(maxlen=MAX_KNOCKS)

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, data: bytes, sender: Address, local: socket.socket, now: float) -> None:
        self._kept.append((now, Knock(data, sender, local.getsockname()[0])))

    def waiting(self, now: float) -> list[Knock]:
        """Those whose senders still wait."""
        return [knock for came, knock in self._kept if now - came <= MAX_KNOCK_AGE]
