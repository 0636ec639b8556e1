"""Two hosts joined by a router on which the kernel's own netem, tbf and nft do the profile."""

import contextlib
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from netem.drivers.addresses import Claim
from netem.drivers.bed import Host
from netem.drivers.report import BedTally, Lateness
from netem.drivers.tclines import (
    firewall_counts,
    has_our_root,
    queue_counts,
    refuse_seed,
    run_line,
    transmitted,
)
from netem.errors import ImpairmentError
from netem.kernel.interfaces import configure, has_ipv6, make_veth, offloads_off, set_sysctl
from netem.kernel.namespaces import Namespace
from netem.link.tally import PathTally, Tally, WayTally
from netem.profile.conditions import Profile, Way
from netem.tc import HANDLE, Command, Ends, Hop, Plan, plan

__all__ = ["HOP", "TcBed", "netem_refusal"]

CLIENT_DEVICE: Final = "netem0"
HOP: Final = Hop(to_client="client", to_server="server")
"""The router's devices, in a namespace of its own."""
_UNCOUNTED: Final = ("delay", "size", "duplicated", "corrupted", "reordered")
_MAC: Final = {
    "client": "02:00:00:00:00:01",
    "router-client": "02:00:00:00:00:02",
    "router-server": "02:00:00:00:00:03",
    "server": "02:00:00:00:00:04",
}


def netem_refusal() -> str | None:
    """Why the kernel does no netem here, or None: tried on a device of a new namespace."""
    line: Command = ("tc", "qdisc", "add", "dev", "lo", "root", "handle", HANDLE, "netem")
    try:
        with Namespace.new() as trial:
            run_line(trial, (*line, "delay", "1ms"))
    except ImpairmentError as error:
        return str(error)
    return None


class TcBed:
    """The kernel draws without a seed: the same losses never come twice."""

    def __init__(
        self,
        profile: Profile,
        *,
        server: Namespace | None = None,
        congestion: str = "cubic",
        udp_port: int | None = None,
    ) -> None:
        """The server's host is a namespace of its own, or the one given, which stays open.

        ImpairmentError for a profile that tc cannot do whole, and where the kernel refuses.
        """
        _refuse_parts(profile, udp_port)
        self._final: BedTally | None = None
        with contextlib.ExitStack() as undo:
            there = Namespace.new() if server is None else Namespace.copy_of(server)
            undo.callback(there.close)
            here = Namespace.new()
            undo.callback(here.close)
            claim = Claim(there)
            undo.callback(claim.close)
            self.router = Namespace.new()
            undo.callback(self.router.close)
            undo.callback(self._part)
            net, six = claim.subnet, has_ipv6(there)
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
            configure(here, ["link set dev lo up"])
            if server is None:
                configure(there, ["link set dev lo up"])
            self._join(self.client, self.server, "client", congestion)
            self._join(self.server, self.client, "server", congestion)
            self._forward(six)
            self._udp_port = udp_port
            self._plan = self._planned(profile)
            for line in self._plan.apply:
                run_line(self.router, line)
            undo.callback(self._end_programs)
            self._sent_before = self._sent()
            self._undo = undo.pop_all()

    def _planned(self, profile: Profile) -> Plan:
        ends = Ends(client=_addresses(self.client), server=_addresses(self.server))
        return plan(profile, HOP, ends=ends, udp_port=self._udp_port)

    def _join(self, host: Host, peer: Host, name: str, congestion: str) -> None:
        """A pair from the host to the router; every neighbour is stated, none is asked for."""
        make_veth(host.namespace, host.interface, self.router, name)
        lines = [
            *_quiet(host.interface, _MAC[name]),
            f"address add {host.ipv4}/32 dev {host.interface}",
            f"route replace {peer.ipv4}/32 dev {host.interface} src {host.ipv4} "
            f"congctl {congestion}",
            f"neigh replace {peer.ipv4} {_at(host.interface, f'router-{name}')}",
        ]
        if host.ipv6:
            lines += [
                f"address add {host.ipv6}/128 dev {host.interface} nodad noprefixroute",
                f"route replace {peer.ipv6}/128 dev {host.interface} congctl {congestion}",
                f"neigh replace {peer.ipv6} {_at(host.interface, f'router-{name}')}",
            ]
        offloads_off(host.namespace, host.interface)
        offloads_off(self.router, name)
        configure(host.namespace, lines)
        # With a metric, so that the plan may add routes of its own that go before these.
        routes = [f"route add {each} dev {name} metric 2048" for each in _addresses(host)]
        neighbours = [f"neigh replace {each} {_at(name, name)}" for each in _addresses(host)]
        own = _router_addresses(host, name)
        configure(self.router, [*_quiet(name, _MAC[f"router-{name}"]), *own, *routes, *neighbours])

    def _part(self) -> None:
        """The pairs would go with the router, but later: the kernel takes its time over it."""
        for name in (HOP.to_client, HOP.to_server):
            with contextlib.suppress(ImpairmentError):
                configure(self.router, [f"link delete dev {name}"])

    def _forward(self, six: bool) -> None:
        set_sysctl(self.router, "ipv4/ip_forward", "1")
        if six:
            set_sysctl(self.router, "ipv6/conf/all/forwarding", "1")

    def restart(self, profile: Profile | None = None, seed: int | None = None) -> None:
        """Take the lines back and run them again, or others: what is under way is gone."""
        refuse_seed(seed)
        if profile is not None:
            _refuse_parts(profile, self._udp_port)
        for line in self._plan.undo:
            run_line(self.router, line)
        if profile is not None:
            self._plan = self._planned(profile)
        for line in self._plan.apply:
            run_line(self.router, line)
        self._sent_before = self._sent()

    def check(self) -> None:
        for line in self._plan.apply:
            if line[0] == "tc" and "root" in line:
                device = line[line.index("dev") + 1]
                if not has_our_root(self.router, device):
                    raise ImpairmentError(f"The qdisc {HANDLE} of {device} is gone.")

    def tally(self) -> BedTally:
        """Also after `close`: the last one then.

        netem counts neither copies nor what it corrupted or reordered. What its delay line had no
        room for is among the lost.
        """
        if self._final is not None:
            return self._final
        has_table = any(line[0] == "nft" for line in self._plan.apply)
        counts = firewall_counts(self.router) if has_table else {}
        up, down = (self._way(way, counts) for way in Way)
        return BedTally(path=PathTally(up=up, down=down), lateness=Lateness(), uncounted=_UNCOUNTED)

    def _way(self, way: Way, counts: dict[str, int]) -> WayTally:
        device = HOP.leaves_by(way) or ""
        queues = queue_counts(self.router, device)
        if queues is None:
            sent = self._sent()[way] - self._sent_before[way]
            link = Tally(offered=sent, delivered=sent)
        else:
            link = queues.tally()
        return WayTally(
            link=link,
            blocked=counts.get(f"blocked {way}", 0),
            policed=counts.get(f"policed {way}", 0),
            too_big=counts.get(f"too big {way}", 0),
        )

    def _sent(self) -> dict[Way, int]:
        """Packets that left the router, for a direction without a qdisc to count them."""
        with self.router.entered():
            table = Path("/proc/thread-self/net/dev").read_text(encoding="ascii")
        return {way: transmitted(table, HOP.leaves_by(way) or "") for way in Way}

    def _end_programs(self) -> None:
        self.client.end_programs()
        self.server.end_programs()

    def close(self) -> None:
        """End the programs started on the hosts, then the router, then the hosts."""
        if self._final is None:
            with contextlib.suppress(ImpairmentError):
                self._final = self.tally()
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


def _refuse_parts(profile: Profile, udp_port: int | None) -> None:
    anybody = Ends(client=("198.18.0.2",), server=("198.18.0.1",))
    cannot = plan(profile, HOP, ends=anybody, udp_port=udp_port).cannot
    if cannot:
        raise ImpairmentError(f"tc cannot do the profile {profile.name} whole: {'; '.join(cannot)}")


def _addresses(host: Host) -> tuple[str, ...]:
    return (host.ipv4, host.ipv6) if host.ipv6 else (host.ipv4,)


def _router_addresses(host: Host, name: str) -> list[str]:
    """For the router's own word, ICMP: host parts 3 and 4 of the subnet."""
    number = 3 if name == "client" else 4
    lines = [f"address add {host.ipv4.rpartition('.')[0]}.{number}/32 dev {name}"]
    if host.ipv6:
        address = f"{host.ipv6.rpartition(':')[0]}:{number}"
        lines.append(f"address add {address}/128 dev {name} nodad noprefixroute")
    return lines


def _quiet(device: str, address: str) -> list[str]:
    """Up, and no word that nobody asked for."""
    return [
        f"link set dev {device} addrgenmode none",
        f"link set dev {device} multicast off arp off",
        f"link set dev {device} address {address} mtu 1500",
        f"link set dev {device} up",
    ]


def _at(device: str, name: str) -> str:
    return f"lladdr {_MAC[name]} nud permanent dev {device}"
