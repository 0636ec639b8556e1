"""What those are told whose connection is no more: its close once again, or a stateless reset."""

from __future__ import annotations

import socket
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from quicserver.limits import DoorLimits
from quicserver.peer import Address
from tenuto.quic import ResetKey

__all__ = ["Afterlife"]

_AMPLIFICATION = 3
"""RFC 9000 section 8.1: no more than so many times what came, for addresses may be forged."""

Send = Callable[[socket.socket, bytes, Address], None]


@dataclass(slots=True, eq=False)
class _Closed:
    """The packets of a CONNECTION_CLOSE, under every ID that a late packet may carry."""

    ids: tuple[bytes, ...]
    datagrams: list[bytes]
    address: Address
    local: socket.socket
    until: float
    heard: int = 0


class Afterlife:
    """Answers packets that no connection here takes.

    A close is repeated for the first, second, fourth, ... packet that comes within three PTOs of
    it (RFC 9000 section 10.2.1); after that, and for connections of a process before this one,
    there are resets (section 10.3), no more than the limit allows.
    """

    def __init__(self, key: ResetKey, limits: DoorLimits, send: Send) -> None:
        self.closes_repeated = 0
        self.resets_sent = 0
        self._key = key
        self._limits = limits
        self._send = send
        self._closed: OrderedDict[_Closed, None] = OrderedDict()
        self._by_id: dict[bytes, _Closed] = {}
        self._allowance: float = limits.resets_per_second
        self._allowed_at = 0.0

    def __len__(self) -> int:
        return len(self._closed)

    def remember(
        self,
        ids: Iterable[bytes],
        datagrams: list[bytes],
        address: Address,
        local: socket.socket,
        until: float,
    ) -> None:
        """This close was sent; until then it may have to be sent again."""
        if len(self._closed) >= self._limits.max_closed:
            self._forget(next(iter(self._closed)))
        closed = _Closed(tuple(ids), datagrams, address, local, until)
        self._closed[closed] = None
        for each in closed.ids:
            self._by_id[each] = closed

    def expire(self, now: float) -> None:
        """Forget the closes whose time is over."""
        for closed in [each for each in self._closed if each.until <= now]:
            self._forget(closed)

    def repeat(self, connection_id: bytes, size: int, now: float) -> bool:
        """Is this ID one of a connection that was closed here? Then its peer may not know yet."""
        closed = self._by_id.get(connection_id)
        if closed is None or closed.until <= now:
            return False
        closed.heard += 1
        due = closed.heard & (closed.heard - 1) == 0
        if due and sum(map(len, closed.datagrams)) <= _AMPLIFICATION * size:
            self.closes_repeated += 1
            for data in closed.datagrams:
                self._send(closed.local, data, closed.address)
        return True

    def reset(
        self, packet: bytes, id_length: int, address: Address, local: socket.socket, now: float
    ) -> None:
        """Answer a short-header packet of a connection that nobody here knows."""
        most = self._limits.resets_per_second
        earned = (now - self._allowed_at) * most
        self._allowance, self._allowed_at = min(most, self._allowance + earned), now
        if self._allowance < 1:
            return
        answer = self._key.answer(packet, id_length)
        if answer is not None:
            self._allowance -= 1
            self.resets_sent += 1
            self._send(local, answer, address)

    def _forget(self, closed: _Closed) -> None:
        del self._closed[closed]
        for each in closed.ids:
            if self._by_id.get(each) is closed:
                del self._by_id[each]
