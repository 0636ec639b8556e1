"""Which bed: the one asked for, or the best that is possible here."""

from collections.abc import Callable
from typing import Final

from netem.drivers.bed import Bed
from netem.drivers.tc import TcBed
from netem.drivers.tun import TunBed
from netem.drivers.veth import VethBed
from netem.errors import ImpairmentError
from netem.kernel.namespaces import Namespace
from netem.profile import Profile
from netem.vm.bed import VmBed

__all__ = ["AUTO", "make_bed"]

AUTO: Final = ("tun", "veth")
"""In this order. Never tc or vm, which know no seed, and never a relay, which knows no TCP."""


def make_bed(
    driver: str,
    profile: Profile,
    seed: int,
    *,
    server: Namespace | None,
    congestion: str,
    localhost: bool,
) -> tuple[str, Bed]:
    """The bed and its driver's name; `auto` takes the first that can be made."""

    def tc() -> Bed:
        if localhost:
            raise ImpairmentError("--localhost crosses no router; use tun or veth.")
        return TcBed(profile, server=server, congestion=congestion)

    def vm() -> Bed:
        if localhost:
            raise ImpairmentError("--localhost crosses no router; use tun or veth.")
        if server is not None:
            raise ImpairmentError("The machine has networks of its own on both sides: add --serve.")
        return VmBed(profile, congestion=congestion)

    def tun() -> Bed:
        return TunBed(profile, seed, server=server, congestion=congestion, localhost=localhost)

    def veth() -> Bed:
        return VethBed(profile, seed, server=server, congestion=congestion, localhost=localhost)

    beds: dict[str, Callable[[], Bed]] = {"tun": tun, "veth": veth, "tc": tc, "vm": vm}
    reasons = []
    for name in AUTO if driver == "auto" else [driver]:
        try:
            return name, beds[name]()
        except ImpairmentError as error:
            reasons.append(f"{name}: {error}")
    raise ImpairmentError(
        f"The link cannot be made here. {' '.join(reasons)} "
        "`python -m netem probe` says what is possible, and the ways out."
    )
