"""A bed whose path is our own `netem.link`, in a process between the two hosts' devices."""

import contextlib
from abc import ABC, abstractmethod
from dataclasses import replace
from types import TracebackType
from typing import Self

from netem.drivers.addresses import Claim
from netem.drivers.bed import Host
from netem.drivers.emulation import Emulation
from netem.drivers.report import BedTally, Drops
from netem.errors import ImpairmentError
from netem.kernel.interfaces import configure, has_ipv6, set_sysctl, transmit_drops
from netem.kernel.namespaces import Namespace
from netem.profile import Profile

__all__ = ["LinkBed"]

QUEUE = 10_000
"""Packets that wait in a device for the emulator, which takes them out at once."""

CLIENT_DEVICE = "netem0"


class LinkBed(ABC):
    """What `tun` and `veth` share: all but the kind of device."""

    def __init__(
        self,
        profile: Profile,
        seed: int,
        *,
        server: Namespace | None = None,
        congestion: str = "cubic",
        localhost: bool = False,
    ) -> None:
        """The server's host is a namespace of its own, or the one given, which stays open.

        With `localhost`, what the client sends to 127.0.0.1 goes to the server's 127.0.0.1.
        """
        with contextlib.ExitStack() as undo:
            there = Namespace.new() if server is None else Namespace.copy_of(server)
            undo.callback(there.close)
            here = Namespace.new()
            undo.callback(here.close)
            claim = Claim(there)
            undo.callback(claim.close)
            net = claim.subnet
            six = has_ipv6(there) and has_ipv6(here)
            self.client = Host(
                namespace=here,
                interface=CLIENT_DEVICE,
                ipv4=net.client4,
                ipv6=net.client6 if six else "",
            )
            self.server = Host(
                namespace=there,
                interface=f"netem{net.number}",
                ipv4=net.server4,
                ipv6=net.server6 if six else "",
            )
            if server is None:
                configure(there, ["link set dev lo up"])
            with contextlib.ExitStack() as ends:
                client_fd, server_fd = self._attach(undo, ends)
                self._set_up(self.client, self.server, congestion)
                self._set_up(self.server, self.client, congestion)
                if localhost:
                    self._reroute_localhost(congestion)
                else:
                    configure(here, ["link set dev lo up"])
                self._emulation = Emulation(profile, seed, self.kind, client_fd, server_fd)
            undo.callback(self._emulation.close)
            undo.callback(self._end_programs)
            self._undo = undo.pop_all()
        self._already_dropped = 0
        self._closed = False
        self._final: BedTally | None = None

    kind: str
    """Of descriptor, as `netem.kernel.ends` knows them."""

    @abstractmethod
    def _attach(self, undo: contextlib.ExitStack, ends: contextlib.ExitStack) -> tuple[int, int]:
        """Make both hosts' devices; the descriptors at the other ends of them.

        `ends` closes those when the emulator has them, `undo` what lives as long as the bed.
        """

    def _set_up(self, host: Host, peer: Host, congestion: str) -> None:
        """Addresses and one route to the other host, and no word that nobody asked for."""
        device = host.interface
        lines = [
            # Neither an address of its own making nor a group to report, so no packet of its own.
            f"link set dev {device} addrgenmode none",
            f"link set dev {device} multicast off",
            f"link set dev {device} txqueuelen {QUEUE} mtu 1500",
            f"address add {host.ipv4}/32 dev {device}",
            f"link set dev {device} up",
            f"route replace {peer.ipv4}/32 dev {device} src {host.ipv4} congctl {congestion}",
        ]
        if host.ipv6:
            lines += [
                f"address add {host.ipv6}/128 dev {device} nodad noprefixroute",
                f"route replace {peer.ipv6}/128 dev {device} congctl {congestion}",
            ]
        configure(host.namespace, lines)

    def _reroute_localhost(self, congestion: str) -> None:
        # Without lo there is no local route for 127.0.0.0/8, so this one is taken; and both ends
        # must take such addresses from a wire (ip-sysctl, route_localnet).
        for host in (self.client, self.server):
            set_sysctl(host.namespace, f"ipv4/conf/{host.interface}/route_localnet", "1")
        way = f"dev {self.client.interface} src {self.client.ipv4} congctl {congestion}"
        configure(self.client.namespace, [f"route replace 127.0.0.1/32 {way}"])

    def restart(self, profile: Profile | None = None, seed: int | None = None) -> None:
        self._already_dropped = self._dropped()
        self._emulation.restart(profile, seed)

    def change(self, profile: Profile, seed: int | None = None) -> None:
        """Other conditions from now on, in mid-stream: as `restart`, but nothing is lost by it.

        What is under way arrives as it would have. The moments of the profile and all counts
        begin anew, and a NAT forgets its bindings.
        """
        self._already_dropped = self._dropped()
        self._emulation.change(profile, seed)

    def check(self) -> None:
        self._emulation.check()

    def fileno(self) -> int:
        """Readable when the emulator is gone."""
        return self._emulation.fileno()

    @property
    def emulator_pid(self) -> int:
        return self._emulation.process.pid

    def tally(self) -> BedTally:
        """Also after `close`: the last one then."""
        if self._closed:
            if self._final is None:
                raise ImpairmentError("The emulator was gone before the last count.")
            return self._final
        told = self._emulation.tally()
        return replace(told, unread=told.unread + self._dropped() - self._already_dropped)

    def drops(self) -> Drops:
        """What the path dropped since its start, one by one, up to a bound.

        Ask when the traffic is over: the emulator writes it all down between two packets.
        """
        if self._closed:
            raise ImpairmentError("The emulator is gone: ask for the drops before the end.")
        return self._emulation.drops()

    def _dropped(self) -> int:
        return sum(
            transmit_drops(host.namespace, host.interface) for host in (self.client, self.server)
        )

    def _end_programs(self) -> None:
        self.client.end_programs()
        self.server.end_programs()

    def close(self) -> None:
        """End the programs started on the hosts, then the path, then the hosts."""
        if not self._closed:
            with contextlib.suppress(ImpairmentError):
                self._final = self.tally()
        self._closed = True
        self._undo.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
