"""Two hosts joined by TUN devices: the emulator reads and writes whole IP packets."""

import contextlib
import os

from netem.drivers.linkbed import LinkBed
from netem.kernel.interfaces import open_tun

__all__ = ["TunBed"]


class TunBed(LinkBed):
    """No Ethernet, so no ARP; no offloads, so what is read is what a wire would carry."""

    kind = "tun"

    def _attach(self, undo: contextlib.ExitStack, ends: contextlib.ExitStack) -> tuple[int, int]:
        client = open_tun(self.client.namespace, self.client.interface)
        ends.callback(os.close, client)
        server = open_tun(self.server.namespace, self.server.interface)
        ends.callback(os.close, server)
        return client, server
