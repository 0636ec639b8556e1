"""A real `sch_netem` between two hosts, where this kernel has none: the lines of `netem.tc` run
on a router that is a virtual machine.
"""

import os
from types import TracebackType
from typing import Self

from netem.drivers.bed import Host
from netem.errors import ImpairmentError
from netem.profile.conditions import Profile
from netem.tc import Command, Ends, Hop, plan, shell
from netem.vm.machine import CommandFailed, Machine
from netem.vm.router import INTERFACES, make_host, router_script

__all__ = ["VmBed"]

_HOP = Hop(to_client=INTERFACES[0], to_server=INTERFACES[1])


class VmBed:
    """Two hosts and a machine between them, all gone with this process, however it ends.

    The kernel draws the packets' fates; Debian 12's `tc` has no way to give it a seed.
    """

    def __init__(self, profile: Profile) -> None:
        self._undo: tuple[Command, ...] = ()
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
            self.apply(profile)
        except BaseException:
            self.close()
            raise

    def apply(self, profile: Profile) -> None:
        """Undo the lines of the profile before, then run this one's."""
        lines = plan(profile, _HOP, ends=self._ends())
        if lines.cannot:
            raise ImpairmentError(f"{profile.name}: {'; '.join(lines.cannot)}")
        undo, self._undo = self._undo, ()
        self._run(undo)
        try:
            self._run(lines.apply)
        except ImpairmentError:
            # Some were run. A line that has nothing to undo fails, which is as well.
            self.machine.run("\n".join(f"{shell(line)} || true" for line in lines.undo))
            raise
        self._undo = lines.undo

    def _ends(self) -> Ends:
        client, server = self.client, self.server
        return Ends(client=(client.ipv4, client.ipv6), server=(server.ipv4, server.ipv6))

    def _run(self, commands: tuple[Command, ...]) -> None:
        try:
            self.machine.run("\n".join(shell(command) for command in commands))
        except CommandFailed as error:
            raise ImpairmentError(f"The machine's kernel refuses a line: {error}") from None

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
