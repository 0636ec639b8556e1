"""`tenuto lab`, which is also `python -m bench.lab`."""

from __future__ import annotations

import math
from pathlib import Path

import click

from tenuto.cli.paths import NamedPath

__all__ = ["lab"]

DEFAULT_PROFILE = "rtt80-loss5"
SEEDS, SECONDS = 10, 20.0
QUICK_SEEDS, QUICK_SECONDS = 2, 4.0
MOST_SEEDS = 1_000
LEAST_SECONDS, MOST_SECONDS = 1.0, 600.0


def _finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no number of seconds.", ctx, param)
    return value


@click.command()
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    metavar="NAME|FILE",
    help=f"A path's conditions; may be given several times.  [default: {DEFAULT_PROFILE}]",
)
@click.option(
    "--mode", "modes", multiple=True, metavar="NAME", help="A way to send; all if none is given."
)
@click.option(
    "--seeds",
    type=click.IntRange(1, MOST_SEEDS),
    help=f"Flows of each mode at each profile.  [default: {SEEDS}]",
)
@click.option(
    "--seconds",
    type=click.FloatRange(LEAST_SECONDS, MOST_SECONDS),
    callback=_finite,
    help=f"Of audio in a flow.  [default: {SECONDS:g}]",
)
@click.option(
    "--quick", is_flag=True, help=f"{QUICK_SEEDS} seeds, {QUICK_SECONDS:g} s: does it work at all?"
)
@click.option(
    "--output",
    type=NamedPath(),
    metavar="FOLDER",
    help="Where results.json and report.html go.  [default: lab-DATE-TIME]",
)
@click.option(
    "--from", "source", type=NamedPath(), metavar="FILE", help="Report on a results.json once more."
)
@click.option("--json", "as_json", is_flag=True, help="Print the results, not the summary.")
def lab(
    profiles: tuple[str, ...],
    modes: tuple[str, ...],
    seeds: int | None,
    seconds: float | None,
    quick: bool,
    output: Path | None,
    source: Path | None,
    as_json: bool,
) -> int:
    """Compare all ways to send over the same bad networks, and write a report.

    Every mode, ours and bare ones, crosses the same emulated links with the same seeds, all at
    once, in network namespaces of this machine. Linux; root, or user namespaces. Ctrl-C at any
    time: what is finished is reported. Exit status 1 if, for some profile, nothing counts because
    the machine was too busy.

    \b
    Try it:
      tenuto lab --quick
      tenuto lab --profile rtt80 --profile rtt80-loss5-burst
      tenuto lab --mode quic-stream --mode ref-datagram --seeds 20

    Profiles are those of `python -m netem list`.
    """  # noqa: D301  # click reads \b
    from bench.lab.session import Request, measure, report_again

    if source is not None:
        if profiles or modes or seeds or seconds or quick:
            raise click.UsageError("--from reports on what was measured: it takes no other plan")
        return report_again(source, output, as_json=as_json)
    return measure(
        Request(
            profiles=profiles or (DEFAULT_PROFILE,),
            modes=modes,
            seeds=seeds or (QUICK_SEEDS if quick else SEEDS),
            seconds=seconds or (QUICK_SECONDS if quick else SECONDS),
            output=output,
            as_json=as_json,
        )
    )
