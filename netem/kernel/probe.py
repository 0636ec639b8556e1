"""What is possible here, in the kernel's own words, and which drivers follow from it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from netem.kernel.fresh import python_running

__all__ = ["DriverFinding", "Findings", "probe"]

PATIENCE: Final = 90.0
"""Seconds for all trials together; each has its own bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFinding:
    driver: str
    possible: bool
    needs: tuple[str, ...]
    """Those of what it needs that are refused."""
    way_out: str
    shows: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    refusals: Mapping[str, str | None]
    """By what was tried: the reason of whoever refused it; None: possible."""
    drivers: tuple[DriverFinding, ...]


_NAMESPACE: Final = "a namespace"
"""Either kind will do."""

_BED: Final = (_NAMESPACE, "pid namespace", "ip", "TCP cubic")
_NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "memory": (),
    "relay": (),
    "tun": (*_BED, "TUN"),
    "veth": (*_BED, "veth", "packet socket"),
    "tc": ("network namespace", "ip", "tc", "veth", "sch_netem", "sch_tbf", "nftables"),
    "vm": (*_BED, "TUN", "machine"),
}

_SHOWS: Final = {
    "memory": "sans-I/O endpoints in virtual time, from tests",
    "relay": "UDP only, any system, no privileges",
    "tun": "everything, TCP and UDP, IPv4 and IPv6",
    "veth": "everything, TCP and UDP, IPv4 and IPv6, where TUN is refused",
    "tc": "everything, by the kernel's own netem",
    "vm": "a real netem in a virtual machine, with --serve",
}

_WAYS_OUT: Final = {
    _NAMESPACE: (
        "be root (sudo; in a container --cap-add NET_ADMIN,SYS_ADMIN), or allow user namespaces "
        "(sysctl kernel.unprivileged_userns_clone=1 on Debian, "
        "kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu), or use the relay for UDP"
    ),
    "network namespace": "be root, start all of it under `unshare -rn`, or use the relay for UDP",
    "pid namespace": "be root, or in a container: --cap-add SYS_ADMIN; or use the relay for UDP",
    "ip": "install iproute2, put it on PATH, or use the relay for UDP",
    "tc": "install iproute2, put it on PATH, or use tun or veth, which need no tc",
    "TUN": (
        "load it (modprobe tun), let this user open it (in a container: --device /dev/net/tun), "
        "or use veth, which needs none"
    ),
    "veth": "load it (modprobe veth), or use tun, or the relay for UDP",
    "packet socket": "be root or allow user namespaces, or use tun, or the relay for UDP",
    "sch_netem": (
        "load it (modprobe sch_netem; package linux-modules-extra, kernel-modules-extra), "
        "use another machine as a router, or use tun or veth, which need none"
    ),
    "sch_tbf": "load it (modprobe sch_tbf), or use tun or veth, which need none",
    "nftables": "install nftables and load nf_tables, or use tun or veth, which need none",
    "machine": (
        "on Debian: apt-get install qemu-system-x86 busybox-static dash iproute2 nftables, then "
        "python -m netem.vm, which downloads a kernel and does not install it"
    ),
    "TCP cubic": "load it (modprobe tcp_cubic), or name another with --congestion",
}


def probe() -> Findings:
    """Nothing outside its own namespaces is changed; it takes a second or so."""
    from netem.kernel.trials import TRIALS

    if sys.platform != "linux":
        refusals: dict[str, str | None] = dict.fromkeys(TRIALS, "Linux only")
    else:
        refusals = _tried(list(TRIALS))
    return Findings(
        refusals=refusals, drivers=tuple(_judged(driver, refusals) for driver in _NEEDS)
    )


def _tried(names: list[str]) -> dict[str, str | None]:
    try:
        done = subprocess.run(
            python_running("netem.kernel.trials"),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )
        refusals: dict[str, str | None] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        # Nothing is known then, and nothing is claimed.
        return dict.fromkeys(names, f"it could not be tried: {type(error).__name__}")
    return refusals


def _judged(driver: str, refusals: Mapping[str, str | None]) -> DriverFinding:
    known = dict(refusals)
    kinds = ("network namespace", "user namespace")
    known[_NAMESPACE] = None if any(known[kind] is None for kind in kinds) else known[kinds[1]]
    needs = tuple(need for need in _NEEDS[driver] if known[need] is not None)
    ways = "; ".join(f"{need}: {_WAYS_OUT[need]}" for need in needs)
    if sys.platform != "linux" and needs:
        ways = "use a Linux machine, a virtual one or a container, or the relay for UDP"
    return DriverFinding(
        driver=driver, possible=not needs, needs=needs, way_out=ways, shows=_SHOWS[driver]
    )
