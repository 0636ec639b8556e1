"""`measure`: what a path really does, beside what its profile says."""

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from netem.catalogue import Catalogue
from netem.cli.choosing import make_bed
from netem.cli.listing import profiles_option
from netem.cli.summary import warnings
from netem.drivers.bed import Bed
from netem.drivers.relay import Relay
from netem.errors import NetemError
from netem.kernel.power import ensure_power
from netem.kernel.processes import run_first
from netem.measure.model import IP_AND_UDP, fitting_rate, linger_of
from netem.measure.numbering import SMALLEST
from netem.measure.over_bed import measure_bed
from netem.measure.plan import FASTEST, LARGEST, LARGEST6, MOST_PACKETS, Plan
from netem.measure.rendering import headline, table_of
from netem.measure.result import SEEDED, Result, judge
from netem.measure.running import Measurement, measure_between
from netem.measure.sockets import open_socket
from netem.profile import Profile
from netem.vm.bed import VmBed

__all__ = ["measure", "showing_progress"]

USUAL_PACKETS = 20_000
USUAL_TIME = 10.0
"""Seconds to send for, at most, unless told how many packets."""
RELAY_RATE = 500.0
"""Packets a second each way: a relay is an ordinary process, and waits for others."""
LONG = 3.0
"""Seconds after which one wants to see that something happens."""

OnProgress = Callable[[int, int], None]


@click.command("measure")
@profiles_option
@click.option(
    "--driver",
    type=click.Choice(["auto", "tun", "veth", "tc", "relay", "vm"]),
    default="auto",
    show_default=True,
    help="vm: a real netem, in a virtual machine.",
)
@click.option("--packets", type=click.IntRange(1, MOST_PACKETS), help="Each way.")
@click.option(
    "--rate", type=click.FloatRange(1, FASTEST), help="A second, each way; else what fits."
)
@click.option(
    "--size",
    type=click.IntRange(SMALLEST, LARGEST),
    default=100,
    show_default=True,
    help="Bytes of payload.",
)
@click.option("--seed", type=click.IntRange(0), help="The same seed, the same fates; else random.")
@click.option("-6", "ipv6", is_flag=True, help="Over IPv6.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write all of it here.")
@click.argument("profile")
def measure(
    profiles: Path | None,
    driver: str,
    packets: int | None,
    rate: float | None,
    size: int,
    seed: int | None,
    ipv6: bool,
    json_file: Path | None,
    profile: str,
) -> int:
    """Send numbered packets both ways, and hold what became of them to PROFILE.

    The exit status is 0 if all figures agree, 1 if one does not. What the measurement could not
    show at all, such as a queue that was never full, is named, and is no disagreement.
    """
    loaded = Catalogue.from_environment(profiles).load(profile)
    chosen = random.SystemRandom().randrange(1, 1 << 31) if seed is None else seed
    if ipv6 and size > LARGEST6:
        raise click.BadParameter(
            f"over IPv6 no more than {LARGEST6} bytes fit a packet.", param_hint="'--size'"
        )
    if driver == "relay":
        rate = rate or min(RELAY_RATE, fitting_rate(loaded, size + IP_AND_UDP[ipv6]))
    plan = _plan(loaded, packets, rate, size, ipv6=ipv6)
    with _written_to(json_file) as write, showing_progress(plan.duration) as on_progress:
        result = _through(driver, loaded, chosen, plan, on_progress, ipv6=ipv6)
        write(result)
    click.echo(headline(result))
    Console(width=None if sys.stdout.isatty() else 100).print(table_of(result))
    for what in result.untried:
        click.echo(f"not tried: {what}")
    for warning in result.warnings:
        click.echo(f"netem: {warning}", err=True)
    return 0 if result.agrees else 1


def _plan(
    profile: Profile, packets: int | None, rate: float | None, size: int, *, ipv6: bool
) -> Plan:
    pace = rate or min(FASTEST, fitting_rate(profile, size + IP_AND_UDP[ipv6]))
    plan = Plan(
        packets=packets or max(1, min(USUAL_PACKETS, round(pace * USUAL_TIME))),
        rate=pace,
        size=size,
        unchecked=bool(profile.up.corrupt or profile.down.corrupt),
    )
    return replace(plan, linger=linger_of(profile, plan))


def _through(
    driver: str,
    profile: Profile,
    seed: int,
    plan: Plan,
    on_progress: OnProgress,
    *,
    ipv6: bool,
) -> Result:
    if driver == "relay":
        started, measurement = _through_relay(profile, seed, plan, on_progress, ipv6=ipv6)
        return judge(profile, driver, seed, measurement, ipv6=ipv6, started=started)
    ensure_power(own_network=True)
    bed: Bed
    if driver == "vm":
        name, bed = driver, VmBed(profile)
    else:
        name, bed = make_bed(
            driver, profile, seed, server=None, congestion="cubic", localhost=False
        )
    with bed:
        began: int | None = None
        if name in SEEDED:
            # What goes by the clock begins at a moment that is known.
            bed.restart()
            began = time.time_ns()
        measurement = measure_bed(bed, profile, plan, ipv6=ipv6, on_progress=on_progress)
        told = tuple(warnings(bed.tally()))
    return judge(profile, name, seed, measurement, ipv6=ipv6, started=began, warnings=told)


def _through_relay(
    profile: Profile, seed: int, plan: Plan, on_progress: OnProgress, *, ipv6: bool
) -> tuple[int, Measurement]:
    host = "::1" if ipv6 else "127.0.0.1"
    # The relay is a thread of this process, which has nothing else to do. Where it may not run
    # first it waits for others, and its delays show it.
    run_first()
    # There is one flow, and no port of it can be chosen here without privileges.
    any_port = replace(profile, udp_port=None)
    with open_socket(host) as client, open_socket(host) as server:
        target = server.getsockname()[:2]
        started = time.time_ns()
        with Relay(any_port, seed, target, (host, 0)) as relay:
            peers = (relay.address, None)
            return started, measure_between(client, server, peers, plan, on_progress)


@contextmanager
def showing_progress(seconds: float) -> Iterator[OnProgress]:
    """A bar on a terminal, for what takes long."""
    console = Console(stderr=True)
    if seconds < LONG or not console.is_terminal:
        yield lambda sent, total: None
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("measuring", total=None)
        yield lambda sent, total: progress.update(task, completed=sent, total=total)


@contextmanager
def _written_to(file: Path | None) -> Iterator[Callable[[Result], None]]:
    """The file is opened before anything else: a measurement without it would be wasted."""
    if file is None:
        yield lambda result: None
        return
    try:
        opened = file.open("w", encoding="utf-8")
    except OSError as error:
        raise NetemError(f"--json {file}: {error.strerror}") from None

    def write(result: Result) -> None:
        try:
            with opened:
                json.dump(result.as_json(), opened, indent=2)
        except OSError as error:
            raise NetemError(f"--json {file}: {error.strerror}") from None

    with opened:
        yield write
