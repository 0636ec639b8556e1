"""Which transport is tried first for one server, on the network that we are in now."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.client.exchange import Transport
from tenuto.client.pathstore import PathStore
from tenuto.client.target import Address
from tenuto.policy import CoolDown

__all__ = ["Paths"]

_QUIC_FIRST: tuple[Transport, ...] = ("quic", "tcp")
_TCP_FIRST: tuple[Transport, ...] = ("tcp", "quic")


class Paths:
    """A view of the store. What is no network, such as this machine itself, has a memory as
    short as this object's life.
    """

    def __init__(self, store: PathStore, origin: str) -> None:
        self._store = store
        self._origin = origin
        self._short = CoolDown()
        self._network: str | None = None
        self.addresses: Sequence[Address] = ()
        """Those of the server."""

    async def arrive(self, addresses: Sequence[Address]) -> None:
        """The server is behind these addresses: now it can be told which network leads there.

        Waits a moment for what other processes have learnt of that one.
        """
        if addresses != self.addresses:
            self.addresses = addresses
            self.network_changed()
        if self._network is not None:
            await self._store.refresh()

    def network_changed(self) -> None:
        """What is known of the network before is not true of this one."""
        self._network = self._store.identify(self.addresses)
        self._short = CoolDown()

    def order(self) -> tuple[Transport, ...]:
        return _TCP_FIRST if self.reprobe_in() > 0 else _QUIC_FIRST

    def reprobe_in(self) -> float:
        """Seconds until QUIC may be tried again; 0 if it may now."""
        return self._known().left(self._store.clock())

    def worked(self, transport: Transport) -> None:
        """It has carried audio for a while."""
        if transport == "quic" and self._known() != CoolDown():
            self._learn(CoolDown())

    def failed(self, transport: Transport) -> None:
        """Of QUIC: it is left alone, each time for twice as long."""
        if transport == "quic":
            store = self._store
            self._learn(self._known().failed(store.clock(), store.cool_down))

    def _known(self) -> CoolDown:
        if self._network is None:
            return self._short
        return self._store.get(self._network, self._origin)

    def _learn(self, cool_down: CoolDown) -> None:
        if self._network is None:
            self._short = cool_down
        else:
            self._store.put(self._network, self._origin, cool_down)
