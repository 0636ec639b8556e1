"""A real `sch_netem` between two hosts, where this kernel has none: the lines of `netem.tc` run
on a router that is a virtual machine.
"""

import os
from types import TracebackType
from typing import Self

from netem.drivers.bed import Host
from netem.profile.conditions import Profile
from netem.vm.machine import Machine
from netem.vm.router import INTERFACES, make_host, router_script

__all__ = ["VmBed"]


class VmBed:
    """Two hosts and a machine between them, all gone with this process, however it ends.

    The kernel draws the packets' fates; Debian 12's `tc` has no way to give it a seed.
    """

    def __init__(self, profile: Profile | None = None) -> None:
        self.client, client_tap = make_host(0)
        try:
            self.server, server_tap = make_host(1)
        except BaseException:
            self.client.close()
            os.close(client_tap)
            raise
        try:
            self.machine = Machine((client_tap, server_tap))
        except BaseException:
            self._close_hosts()
            raise
        finally:
            os.close(client_tap)
            os.close(server_tap)
        try:
            self.machine.run(router_script())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.machine.close()
        self._close_hosts()

    def _close_hosts(self) -> None:
        for host in (self.client, self.server):
            host.end_programs()
            host.namespace.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()
