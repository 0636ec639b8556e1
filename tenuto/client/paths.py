"""Which transport is tried first for one server, on the network that we are in now."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.client.exchange import Transport
from tenuto.client.identity import network_identity
from tenuto.client.pathstore import PathStore
from tenuto.client.target import Address
from tenuto.policy import FIRST_COOL_DOWN, CoolDown

__all__ = ["Paths"]

_QUIC_FIRST: tuple[Transport, ...] = ("quic", "tcp")
_TCP_FIRST: tuple[Transport, ...] = ("tcp", "quic")


class Paths:
    """A view of the store. Before `arrive` has told the addresses nothing is known or kept.

    `cool_down` is the first one in seconds.
    """

    def __init__(self, store: PathStore, origin: str, cool_down: float = FIRST_COOL_DOWN) -> None:
        self._store = store
        self._origin = origin
        self._first = cool_down
        self._addresses: Sequence[Address] = ()
        self._network: str | None = None

    def arrive(self, addresses: Sequence[Address]) -> None:
        """The server is behind these addresses: now it can be told which network leads there."""
        if addresses != self._addresses:
            self._addresses = addresses
            self.network_changed()

    def network_changed(self) -> None:
        """What is known of the network before is not true of this one."""
        self._network = network_identity(self._addresses)

    def order(self) -> tuple[Transport, ...]:
        return _TCP_FIRST if self.reprobe_in() > 0 else _QUIC_FIRST

    def reprobe_in(self) -> float:
        """Seconds until QUIC may be tried again; 0 if it may now."""
        return self._known().left(self._store.clock())

    def worked(self, transport: Transport) -> None:
        """It has carried audio for a while."""
        if transport == "quic" and self._network is not None and self._known() != CoolDown():
            self._store.put(self._network, self._origin, CoolDown())

    def failed(self, transport: Transport) -> None:
        """Of QUIC: it is left alone, each time for twice as long."""
        if transport == "quic" and self._network is not None:
            known = self._known().failed(self._store.clock(), self._first)
            self._store.put(self._network, self._origin, known)

    def _known(self) -> CoolDown:
        if self._network is None:
            return CoolDown()
        return self._store.get(self._network, self._origin)
