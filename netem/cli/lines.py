"""`lines`: a profile in the kernel's own words, to read, to keep, to run where you choose."""

from collections.abc import Sequence
from pathlib import Path

import click

from netem.catalogue import Catalogue
from netem.cli.listing import profiles_option
from netem.drivers.addresses import Subnet
from netem.drivers.tc import HOP
from netem.profile import Profile
from netem.tc import Ends, Hop, plan, printed, shell

__all__ = ["lines_command", "print_router"]

HELP = """Print the tc and nft lines that do what PROFILE says.

On a router between the client and the server, name its device TO_CLIENT and its device TO_SERVER;
on a machine that is an end itself, the one device by --client or --server. Nothing is run.

\b
  python -m netem lines 4g eth0 eth1              # to read, with the lines that undo them
  python -m netem lines 4g eth0 eth1 | sudo sh -e # on a router
  python -m netem lines 4g eth0 eth1 --undo | sudo sh

What tc cannot do of the profile is said on standard error, and the exit status is 1.
"""


@click.command("lines", help=HELP)
@profiles_option
@click.option("--client", metavar="DEVICE", help="This machine is the client: what leaves it.")
@click.option("--server", metavar="DEVICE", help="This machine is the server: what leaves it.")
@click.option("--udp-port", type=click.IntRange(1, 65_535), help="Only this port is blocked.")
@click.option("--undo", is_flag=True, help="The lines that take it all back.")
@click.argument("profile")
@click.argument("to_client", required=False)
@click.argument("to_server", required=False)
def lines_command(
    profiles: Path | None,
    client: str | None,
    server: str | None,
    udp_port: int | None,
    undo: bool,
    profile: str,
    to_client: str | None,
    to_server: str | None,
) -> int:
    """Print, and say what is left out."""
    loaded = Catalogue.from_environment(profiles).load(profile)
    hop = _hop(to_client, to_server, client, server)
    made = plan(loaded, hop, udp_port=udp_port)
    for line in _texts(loaded, hop, udp_port, undo=undo):
        click.echo(line)
    return _said(made.cannot)


def print_router(profile: Profile, driver: str) -> int:
    """What the router of the tc driver would be told; the status is that of `lines`."""
    if driver != "tc":
        raise click.UsageError(
            "--print shows the lines of --driver tc, and no other driver has any; for devices of "
            f"your own: python -m netem lines {profile.name} TO_CLIENT TO_SERVER"
        )
    # The addresses of the first subnet: a run takes another if that one is in use.
    net = Subnet(0)
    ends = Ends(client=(net.client4, net.client6), server=(net.server4, net.server6))
    for line in printed(profile, HOP, ends=ends):
        click.echo(line)
    return _said(plan(profile, HOP, ends=ends).cannot)


def _said(cannot: Sequence[str]) -> int:
    for missing in cannot:
        click.echo(f"netem: not done by these lines: {missing}", err=True)
    return 1 if cannot else 0


def _texts(profile: Profile, hop: Hop, udp_port: int | None, *, undo: bool) -> list[str]:
    if undo:
        return [shell(line) for line in plan(profile, hop, udp_port=udp_port).undo]
    texts = printed(profile, hop, udp_port=udp_port)
    # Piped into a shell, the lines that undo must not run: they are shown as comments.
    after = texts.index("# to undo") if "# to undo" in texts else len(texts)
    return [*texts[: after + 1], *(f"#   {line}" for line in texts[after + 1 :])]


def _hop(
    to_client: str | None, to_server: str | None, client: str | None, server: str | None
) -> Hop:
    ends = [device for device in (client, server) if device is not None]
    named = [device for device in (to_client, to_server) if device is not None]
    if len(ends) == 1 and not named:
        return Hop(to_server=client) if client is not None else Hop(to_client=server)
    if not ends and len(named) == 2 and named[0] != named[1]:
        return Hop(to_client=to_client, to_server=to_server)
    raise click.UsageError(
        "Name a router's two devices, TO_CLIENT and TO_SERVER, or one by --client or --server."
    )
