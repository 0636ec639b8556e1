"""A relay in a process of its own: `python -m bench.link_relay PROFILE HOST PORT`.

It prints its address, then its counts for every line on standard input.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

from bench.link_profiles import PROFILES
from netem.drivers.relay import Relay

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    name, host, port = arguments
    with Relay(PROFILES[name], 1, (host, int(port)), ("127.0.0.1", 0)) as relay:
        print(json.dumps(relay.address), flush=True)
        for _ in sys.stdin:
            told = {"path": asdict(relay.tally()), "errors": relay.counts().send_errors}
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(0)
