"""Two hosts joined by Ethernet pairs to a namespace between, where TUN is refused."""

import contextlib
import os

from netem.drivers.bed import Host
from netem.drivers.linkbed import LinkBed
from netem.errors import ImpairmentError
from netem.kernel.ends import HOST_ADDRESS, PacketEnd
from netem.kernel.interfaces import configure, make_veth, offloads_off
from netem.kernel.namespaces import Namespace

__all__ = ["VethBed"]


class VethBed(LinkBed):
    """The emulator reads and writes frames by packet sockets; no stack is in between.

    Nobody asks for an Ethernet address, so none has to be resolved before the first packet.
    """

    kind = "packet"

    def _attach(self, undo: contextlib.ExitStack, ends: contextlib.ExitStack) -> tuple[int, int]:
        middle = Namespace.new()
        # The pairs go with it, from the hosts too.
        undo.callback(middle.close)
        client = self._join(self.client, middle, "client")
        ends.callback(os.close, client)
        server = self._join(self.server, middle, "server")
        ends.callback(os.close, server)
        return client, server

    def _join(self, host: Host, middle: Namespace, name: str) -> int:
        make_veth(host.namespace, host.interface, middle, name)
        offloads_off(host.namespace, host.interface)
        offloads_off(middle, name)
        configure(host.namespace, [f"link set dev {host.interface} address {HOST_ADDRESS} arp off"])
        configure(
            middle,
            [
                f"link set dev {name} addrgenmode none",
                f"link set dev {name} multicast off arp off",
                f"link set dev {name} up",
            ],
        )
        try:
            with middle.entered():
                return PacketEnd.open(name)
        except OSError as error:
            raise ImpairmentError(f"Packet sockets are refused here: {error.strerror}.") from None
