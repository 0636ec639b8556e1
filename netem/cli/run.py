"""`run`: a command behind a profile's path."""

import math
import os
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path

import click

from netem.catalogue import Catalogue
from netem.cli.behind import run_behind_bed
from netem.cli.lines import print_router
from netem.cli.listing import profiles_option
from netem.cli.relayed import run_behind_relay
from netem.cli.reporting import reporting
from netem.cli.request import BY_KERNEL, Request, ServeOrder
from netem.cli.streams import say
from netem.kernel.contained import NOT_EXECUTABLE, NOT_FOUND

__all__ = ["run"]


HELP = """Run COMMAND behind the path that PROFILE describes.

What COMMAND sends to the address in NETEM_SERVER (NETEM_SERVER6 for IPv6) crosses the link and
arrives in your own network, or where CMD of --serve runs; other networks do not exist for it.
Your server must listen on that address, or on all, or, with --localhost, on 127.0.0.1. What was
done to how many packets is told at the end, on standard error.

\b
  python -m netem run loss5 --serve 'python -m http.server 8000' -- \\
      sh -c 'curl http://$NETEM_SERVER:8000/'

Put `--` before COMMAND if it has options. The second Ctrl-C kills it.
"""


class _Address(click.ParamType[tuple[str, int]]):
    name = "HOST:PORT"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        host, colon, port = str(value).rpartition(":")
        if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65_536:
            self.fail(f"{value!r} is no HOST:PORT, such as 127.0.0.1:4433 or [::1]:4433.")
        return host.removeprefix("[").removesuffix("]"), int(port)


def _finite(ctx: click.Context, param: click.Parameter, value: float) -> float:
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is no number of seconds.", ctx, param)
    return value


class _Word(click.ParamType[str]):
    name = "NAME"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        # It becomes part of a line that `ip` reads.
        if not re.fullmatch(r"[A-Za-z0-9_]+", str(value)):
            self.fail(f"{value!r} is no congestion control, such as cubic or bbr.", param, ctx)
        return str(value)


@click.command("run", help=HELP)
@profiles_option
@click.option("--seed", type=click.IntRange(0), help="The same seed, the same fates; else random.")
@click.option(
    "--driver",
    type=click.Choice(["auto", "tun", "veth", "tc", "vm", "relay"]),
    default="auto",
    show_default=True,
    help="auto: the best that is possible here.",
)
@click.option("--localhost", is_flag=True, help="127.0.0.1 means the server's, across the link.")
@click.option(
    "--serve",
    metavar="CMD",
    help="Start the server side too, by the shell, in a network apart; prints to standard error.",
)
@click.option("--ready", type=click.IntRange(1, 65_535), metavar="PORT", help="What CMD opens.")
@click.option(
    "--ready-within",
    type=click.FloatRange(0, min_open=True),
    callback=_finite,
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long CMD may take to open its port.",
)
@click.option("--server", type=_Address(), metavar="HOST:PORT", help="Where a relay leads.")
@click.option("--udp-port", type=click.IntRange(1, 65_535), help="Only this port is blocked.")
@click.option(
    "--congestion",
    type=_Word(),
    default="cubic",
    show_default=True,
    help="TCP's congestion control.",
)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), help="Write the summary here."
)
@click.option("--print", "print_lines", is_flag=True, help="With tc: its lines, and run nothing.")
@click.argument("profile")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def run(
    profiles: Path | None,
    seed: int | None,
    driver: str,
    localhost: bool,
    serve: str | None,
    ready: int | None,
    ready_within: float,
    server: tuple[str, int] | None,
    udp_port: int | None,
    congestion: str,
    json_file: Path | None,
    print_lines: bool,
    profile: str,
    command: tuple[str, ...],
) -> int:
    """Put a command behind a path."""
    loaded = Catalogue.from_environment(profiles).load(profile)
    if udp_port is not None:
        loaded = replace(loaded, udp_port=udp_port)
    if print_lines:
        return print_router(loaded, driver)
    if not command:
        raise click.UsageError("Missing argument 'COMMAND...'.")
    _check_together(driver, server, serve, localhost, ready)
    absent = _status_if_absent(command[0])
    if absent:
        return absent
    request = Request(
        profile=loaded,
        seed=random.SystemRandom().randrange(1, 1 << 31) if seed is None else seed,
        driver=_settled(driver, server),
        localhost=localhost,
        serve=None if serve is None else ServeOrder(line=serve, port=ready, patience=ready_within),
        relay_to=server,
        congestion=congestion,
        command=command,
    )
    with reporting(json_file) as report:
        if request.driver == "relay":
            return run_behind_relay(request, report)
        return run_behind_bed(request, report)


def _settled(driver: str, server: tuple[str, int] | None) -> str:
    return "relay" if driver == "auto" and server is not None else driver


def _check_together(
    driver: str,
    server: tuple[str, int] | None,
    serve: str | None,
    localhost: bool,
    ready: int | None,
) -> None:
    """Options that mean nothing beside each other."""
    relay = driver == "relay" or (driver == "auto" and server is not None)
    if relay and server is None:
        raise click.UsageError("--driver relay needs --server HOST:PORT, where it leads.")
    if server is not None and not relay:
        raise click.UsageError("--server goes with --driver relay alone.")
    if relay and (serve is not None or localhost):
        raise click.UsageError("--serve and --localhost need a network apart, not a relay.")
    if driver == "vm" and serve is None:
        raise click.UsageError(
            "--driver vm has networks of its own on both sides; "
            "start the server in one of them, with --serve CMD."
        )
    if driver in BY_KERNEL and localhost:
        raise click.UsageError("--localhost crosses no router; use --driver tun or veth.")
    if ready is not None and serve is None:
        raise click.UsageError("--ready says when the CMD of --serve is there, and there is none.")


def _status_if_absent(name: str) -> int:
    """What a shell would end with, before anything is set up; 0 if the command is there."""
    if shutil.which(name) is not None:
        return 0
    there = "/" in name and os.path.exists(name)
    say(f"netem: {name}: {'cannot be executed' if there else 'not found'}")
    return NOT_EXECUTABLE if there else NOT_FOUND
