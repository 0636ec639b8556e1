"""`tenuto doctor`: what this network does to Tenuto, and what to ask for."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tenuto import __version__
from tenuto.cli.options import ca_option, insecure_option, trust_for
from tenuto.cli.place import shown
from tenuto.client import Target
from tenuto.daemons import DaemonExecutor
from tenuto.doctor.diagnosis.conclusion import diagnose
from tenuto.doctor.diagnosis.evidence import Evidence
from tenuto.doctor.diagnosis.report import as_document, as_text
from tenuto.doctor.examination import DEFAULT_NAT, MOST_NAT, Examination, Plan

__all__ = ["doctor"]

_HELP = """Say what this network does to Tenuto, in words to send on to those who run it.

Examines UDP, QUIC, TCP, TLS, both clocks, the largest packet, a second or two of voice, and how
long a NAT on the way remembers a silent flow. It sends less than 2 MB in about ten seconds; behind
a NAT it also waits for the longest silence.

\b
Examples:
  tenuto doctor localhost:4433
  tenuto doctor voice.example.com
  tenuto doctor https://voice.example.com:8443 --nat 65
  tenuto doctor localhost:4433 --quick --json

Exit status: 0 if QUIC works well; 1 if something hinders it; 2 if something must be asked or set
differently: a name, a CA, a clock; 130 after Ctrl-C, which tells what was known by then."""


def _finite(ctx: click.Context, param: click.Parameter, value: float) -> float:
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is no number of seconds", ctx, param)
    return value


@click.command(help=_HELP, short_help="Say what this network does to Tenuto.")
@click.argument("server", metavar="HOST[:PORT]|URL")
@click.option(
    "--nat",
    type=click.FloatRange(0, MOST_NAT),
    callback=_finite,
    default=DEFAULT_NAT,
    show_default=True,
    metavar="SECONDS",
    help="The longest silence after which a NAT is asked whether it remembers; 0 for none.",
)
@click.option("--quick", is_flag=True, help="No silences, and less long a voice.")
@ca_option
@insecure_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all figures.")
def doctor(
    server: str, nat: float, quick: bool, ca: Path | None, insecure: bool, as_json: bool
) -> int:
    if insecure and ca is not None:
        raise click.UsageError("--ca and --insecure contradict each other")
    target = Target.parse(_url(server))
    logging.getLogger("quic").setLevel(logging.CRITICAL)
    with _progress() as on_step:
        trust = trust_for(target.host, ca, insecure=insecure)
        examination = Examination(target, trust, Plan(nat, quick), on_step=on_step)
        try:
            asyncio.run(_run(examination))
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
    _tell(examination.evidence, as_json=as_json)
    if interrupted:
        raise click.Abort
    return diagnose(examination.evidence).conclusion.status


def _url(server: str) -> str:
    if "://" in server:
        return server
    bare_ipv6 = server.count(":") > 1 and not server.startswith("[")
    return f"https://[{server}]" if bare_ipv6 else f"https://{server}"


async def _run(examination: Examination) -> None:
    # A name that takes its time to be looked up holds nobody up at the end.
    asyncio.get_running_loop().set_default_executor(DaemonExecutor())
    await examination.run()


def _tell(evidence: Evidence, *, as_json: bool) -> None:
    now = time()
    if as_json:
        print(json.dumps(as_document(evidence, now, __version__)))
        return
    for line in as_text(evidence, now, __version__).splitlines():
        print(shown(line))


@contextmanager
def _progress() -> Iterator[Callable[[str, float], None]]:
    """A bar on a terminal; nothing where nobody looks."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda what, seconds: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=None)

        def step(what: str, seconds: float) -> None:
            expected = f" (about {seconds:.0f} s)" if seconds >= 1 else ""
            progress.update(task, description=f"{what}{expected}")

        yield step
