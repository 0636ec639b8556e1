"""`agree`: the same profiles through our link and through a real netem in a virtual machine."""

from pathlib import Path

import click

from netem.catalogue import Catalogue
from netem.cli.listing import profiles_option
from netem.kernel.power import ensure_power
from netem.measure.rendering import agreement_lines
from netem.measure.side_by_side import TRIALS, side_by_side, trial_of

__all__ = ["agree"]


@click.command("agree")
@profiles_option
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of our link.")
@click.option("-6", "ipv6", is_flag=True, default=None, help="All of it over IPv6.")
@click.argument("profile", nargs=-1)
def agree(profiles: Path | None, seed: int, ipv6: bool | None, profile: tuple[str, ...]) -> int:
    """Measure each PROFILE through tun and through the kernel's own netem, and compare.

    Losses agree if their difference may be chance (99 %), delays within a millisecond. Without
    PROFILE, a set that shows all tc can do. The exit status is 1 if something does not agree.
    """
    catalogue = Catalogue.from_environment(profiles)
    trials = [trial_of(catalogue.load(name), ipv6=ipv6) for name in profile or TRIALS]
    ensure_power(own_network=True)
    found = list(side_by_side(trials, seed, lambda what: click.echo(f"netem: {what}", err=True)))
    for line in agreement_lines(found):
        click.echo(line)
    return 0 if all(one.agrees for one in found) else 1
