"""`python -m bench NAME [--quick]`: JSON lines on standard output, the summary last."""

from __future__ import annotations

import argparse
import sys
from difflib import get_close_matches
from importlib import import_module

from bench.ending import status
from bench.report import write
from tenuto.errors import OperatorError

__all__ = ["main"]

BENCHES = {
    "disturb": "who pays when listeners stall and leave: gaps of others, memory",
    "doctor": "tenuto doctor on emulated networks: how often it names what is wrong",
    "first_audio": "first audio, gaps and cost of both doors beside bare aioquic and hypercorn",
    "herd": "a thousand clients come back after a restart, in virtual time",
    "link": "the loss lab: packets a second, added delay, what an offer costs",
    "playout": "the jitter buffer against an offline optimum, on made and recorded arrivals",
    "resume": "connections cut and changed at random moments: is a frame lost, how soon it goes on",
    "ring": "what a frame costs in a session, as a ratio to a bare collections.deque",
    "soak": "a hundred listeners come and go for half an hour: what grows, who notices",
    "switch": "UDP blocked, dying, rebound, away: is a word lost, how soon it goes on elsewhere",
    "stalled": "what listeners that stand still cost, hide, and do to others",
}
"""By the name of the module in `bench` whose `run(quick)` yields the lines to print."""

OF_MINUTES = {"soak"}
"""Benches that may be told how long: `run(quick, minutes=…)`."""

OF_FILES = {"doctor", "playout", "switch"}
"""Benches that take files or names too: `run(quick, files)`."""


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 1 where the summary says that a limit was not met."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure, and print JSON lines; the last one is the summary.",
        epilog=_listing(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", help="one of those below; none lists them")
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="playout: recorded arrivals; doctor, switch: names of conditions",
    )
    parser.add_argument("--quick", action="store_true", help="seconds, and rough figures")
    parser.add_argument("--minutes", type=float, help="soak: how long, 30 by default")
    options = parser.parse_intermixed_args(arguments)
    if options.name is None:
        print(_listing())
        return 0
    if options.name not in BENCHES:
        near = get_close_matches(options.name, BENCHES, n=1, cutoff=0.4)
        remedy = f"Did you mean {near[0]!r}?" if near else f"There is: {', '.join(BENCHES)}."
        print(f"No bench is called {options.name!r}. {remedy}", file=sys.stderr)
        return 2
    if options.files and options.name not in OF_FILES:
        print(f"The bench {options.name!r} takes no files.", file=sys.stderr)
        return 2
    if options.minutes is not None and options.name not in OF_MINUTES:
        print(f"The bench {options.name!r} takes no minutes.", file=sys.stderr)
        return 2
    timed = {"minutes": options.minutes} if options.minutes is not None else {}
    given = [options.files] if options.name in OF_FILES else []
    missed = False
    try:
        for figures in import_module(f"bench.{options.name}").run(options.quick, *given, **timed):
            write(figures)
            missed = missed or figures.get("met") is False
    except OperatorError as error:
        print(error, file=sys.stderr)
        return 2
    return 1 if missed else 0


def _listing() -> str:
    lines = [f"  {name:12} {summary}" for name, summary in BENCHES.items()]
    return "\n".join(["Benches:", *lines])


if __name__ == "__main__":
    sys.exit(status(main))
