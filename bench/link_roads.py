"""What two ends are joined by: a bed, a relay, or nothing but the kernel, which is the peer.

All of it is in network namespaces made here. Only a relay and its peer, without the privilege
for one, are on the loopback of whoever asks.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from bench.link_profiles import PROFILES
from netem.drivers.bed import Host
from netem.drivers.linkbed import LinkBed
from netem.drivers.report import Lateness
from netem.drivers.tun import TunBed
from netem.drivers.veth import VethBed
from netem.errors import ImpairmentError
from netem.kernel.ends import HOST_ADDRESS
from netem.kernel.interfaces import configure, make_veth, offloads_off
from netem.kernel.namespaces import Namespace
from netem.profile import Profile

__all__ = ["BEDS", "PEERS", "Counts", "Road", "make_road"]

_QUEUE = 10_000
"""Packets, as a bed's devices have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Of everything on the way, since `restart`."""

    lost: int = 0
    """As the profile wants."""
    overflowed: int = 0
    undelivered: int = 0
    """A device dropped it, a relay did not read it, or nobody took it from the emulator."""
    unread: int = 0
    """The buffer of an end's socket was full."""
    backlog: int = 0
    """Any processor of this machine had more packets waiting than the kernel allows."""
    behind: float = 0.0
    """Seconds that a packet may have waited for the emulator, at worst."""
    lateness: Lateness = field(default_factory=Lateness)
    unscheduled: str | None = None
    """Why the emulator runs among ordinary processes though it was to be first."""


class Popen(Protocol):
    def __call__(self, argv: list[str], *, stdin: int, stdout: int) -> subprocess.Popen[bytes]: ...


class Road(ABC):
    """Between two places where programs can be started."""

    emulator: int | None = None
    """Process id."""
    first = False
    """Whether the emulator may run before all ordinary processes."""

    def __init__(self) -> None:
        self._undo = contextlib.ExitStack()
        self._before = Counts()

    client: Popen
    server: Popen
    host: str
    """The server's address."""

    def target(self, port: int) -> tuple[str, int]:
        """Where the client sends to, for a server that listens at `port`."""
        return self.host, port

    def restart(self) -> None:
        self._before = self._count()

    def counts(self) -> Counts:
        now, before = self._count(), self._before
        return Counts(
            lost=now.lost - before.lost,
            overflowed=now.overflowed - before.overflowed,
            undelivered=now.undelivered - before.undelivered,
            unread=now.unread - before.unread,
            backlog=now.backlog - before.backlog,
            behind=now.behind,
            lateness=now.lateness,
            unscheduled=now.unscheduled,
        )

    @abstractmethod
    def _count(self) -> Counts: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()


class _Bed(Road):
    def __init__(
        self, kind: Callable[[Profile, int], LinkBed], profile: str, *, first: bool
    ) -> None:
        super().__init__()
        self._bed = bed = self._undo.enter_context(kind(PROFILES[profile], 1))
        self.client, self.server, self.host = bed.client.popen, bed.server.popen, bed.server.ipv4
        self.emulator = bed.emulator_pid
        self.first = first
        if not first:
            os.sched_setscheduler(self.emulator, os.SCHED_OTHER, os.sched_param(0))

    def restart(self) -> None:
        # For the lateness, which is no difference of two counts.
        self._bed.restart()
        super().restart()

    def _count(self) -> Counts:
        told = self._bed.tally()
        links = told.path.up.link, told.path.down.link
        return Counts(
            lost=sum(link.lost for link in links),
            overflowed=sum(link.overflowed for link in links),
            undelivered=told.unread + told.write_errors,
            unread=_unread(self._bed.client) + _unread(self._bed.server),
            backlog=_backlog(),
            behind=told.behind,
            lateness=told.lateness,
            unscheduled=told.unscheduled,
        )


class _Empty(Road):
    """A veth pair between two namespaces, without anything on it."""

    first = True

    def __init__(self) -> None:
        super().__init__()
        hosts = []
        for number, name in enumerate(("empty0", "empty1")):
            namespace = self._undo.enter_context(Namespace.new())
            address = f"198.18.0.{2 - number}"
            hosts.append(Host(namespace=namespace, interface=name, ipv4=address, ipv6=""))
        client, server = hosts
        make_veth(client.namespace, client.interface, server.namespace, server.interface)
        for host in hosts:
            offloads_off(host.namespace, host.interface)
            device = f"link set dev {host.interface}"
            lines = [
                f"{device} addrgenmode none",
                f"{device} address {HOST_ADDRESS} multicast off arp off txqueuelen {_QUEUE}",
                f"address add {host.ipv4}/32 dev {host.interface}",
                f"{device} up",
            ]
            configure(host.namespace, lines)
            self._undo.callback(host.end_programs)
        for host, peer in ((client, server), (server, client)):
            route = f"route replace {peer.ipv4}/32 dev {host.interface} src {host.ipv4}"
            configure(host.namespace, [route])
        self._hosts = hosts
        self.client, self.server, self.host = client.popen, server.popen, server.ipv4

    def _count(self) -> Counts:
        return Counts(unread=sum(map(_unread, self._hosts)), backlog=_backlog())


class _Loopback(Road):
    """Of a namespace made for it, if one can be made."""

    def __init__(self) -> None:
        super().__init__()
        self._of: Host | None = None
        self.host = "127.0.0.1"
        try:
            namespace = self._undo.enter_context(Namespace.new())
        except ImpairmentError:
            self.client = self.server = _popen
            return
        configure(namespace, ["link set dev lo up"])
        self._of = Host(namespace=namespace, interface="lo", ipv4=self.host, ipv6="")
        self._undo.callback(self._of.end_programs)
        self.client = self.server = self._of.popen

    def _count(self) -> Counts:
        return Counts(unread=_unread(self._of), backlog=_backlog())


class _Relay(_Loopback):
    def __init__(self, profile: str) -> None:
        super().__init__()
        self._profile = profile
        self._ask: Callable[[], Mapping[str, Any]] | None = None

    def target(self, port: int) -> tuple[str, int]:
        module = [sys.executable, "-m", "bench.link_relay", self._profile, self.host, str(port)]
        process = self.client(module, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._undo.callback(_end, process)
        self.emulator = process.pid
        host, at = _answer(process)

        def ask() -> Mapping[str, Any]:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
            told: Mapping[str, Any] = _answer(process)
            return told

        self._ask = ask
        return host, at

    def _count(self) -> Counts:
        assert self._ask is not None
        told = self._ask()
        links = [told["path"][way]["link"] for way in ("up", "down")]
        return Counts(
            lost=sum(link["lost"] for link in links),
            overflowed=sum(link["overflowed"] for link in links),
            # The ends have large buffers: whose was full was the relay.
            undelivered=told["errors"] + _unread(self._of),
            backlog=_backlog(),
        )


def _popen(argv: list[str], *, stdin: int, stdout: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv, stdin=stdin, stdout=stdout)


def _answer(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"a process of the bench ended with {process.wait()}")
    return json.loads(line)


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.kill()
    process.wait()
    process.stdout.close()


def _unread(host: Host | None) -> int:
    """Datagrams for which a socket there had no room."""
    with contextlib.nullcontext() if host is None else host.entered():
        text = Path("/proc/thread-self/net/snmp").read_text(encoding="ascii")
    names, values = (line.split() for line in text.splitlines() if line.startswith("Udp:"))
    return int(values[names.index("RcvbufErrors")])


def _backlog() -> int:
    # A line of hexadecimal numbers for each processor; the second counts what was dropped.
    lines = Path("/proc/net/softnet_stat").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1], 16) for line in lines)


BEDS: Mapping[str, Callable[[Profile, int], LinkBed]] = {"tun": TunBed, "veth": VethBed}
PEERS = {"tun": "empty", "veth": "empty", "relay": "loopback"}
"""The road without an emulator that each is compared with."""


def make_road(kind: str, profile: str, *, first: bool = True) -> Road:
    """ImpairmentError where it cannot be made. Not `first`: among ordinary processes."""
    if kind in BEDS:
        return _Bed(BEDS[kind], profile, first=first)
    if kind == "empty":
        return _Empty()
    return _Relay(profile) if kind == "relay" else _Loopback()
