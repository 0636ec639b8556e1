"""Which bed: the one asked for, or the best that is possible here."""

from collections.abc import Callable
from typing import Final

from netem.drivers.linkbed import LinkBed
from netem.drivers.tun import TunBed
from netem.drivers.veth import VethBed
from netem.errors import ImpairmentError
from netem.kernel.namespaces import Namespace
from netem.profile import Profile

__all__ = ["BEDS", "make_bed"]

BEDS: Final[dict[str, type[LinkBed]]] = {"tun": TunBed, "veth": VethBed}


def make_bed(
    driver: str,
    profile: Profile,
    seed: int,
    *,
    server: Namespace | None,
    congestion: str,
    localhost: bool,
) -> tuple[str, LinkBed]:
    """The bed and its driver's name; `auto` takes the first that can be made."""
    reasons = []
    for name in BEDS if driver == "auto" else [driver]:
        build: Callable[..., LinkBed] = BEDS[name]
        try:
            bed = build(profile, seed, server=server, congestion=congestion, localhost=localhost)
        except ImpairmentError as error:
            reasons.append(f"{name}: {error}")
        else:
            return name, bed
    raise ImpairmentError(
        f"The link cannot be made here. {' '.join(reasons)} "
        "`python -m netem probe` says what is possible, and the ways out."
    )
