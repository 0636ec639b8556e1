"""The listeners of the soak, in a process of their own: `python -m bench.soak_load JSON`.

Prints one JSON object: what the steady listeners heard and what the others did.
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import uvloop

from bench.load_quic import QuicListener
from bench.load_tcp import TcpListener, client_context
from bench.soak_visit import Place, visit

__all__ = ["Churn", "Steady", "start"]

_STEADY = "/v1/speak?source=counting&frames=5000000&lead=0.2&chunk=1"
_SETTLE = 3.0


@dataclass(frozen=True, slots=True)
class Churn:
    """`listeners` come and go for `seconds`; `close` is the share of sessions they close."""

    port: int
    ca: str
    listeners: int
    seconds: float
    stay: float
    """The longest stay."""
    close: float
    seed: int


@dataclass(frozen=True, slots=True)
class Steady:
    """What one that stayed heard: gaps between frames in ms."""

    frames: int
    gap_p50: float
    gap_p99: float
    gap_max: float
    missing: int
    duplicates: int
    trouble: str


def start(churn: Churn) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.soak_load", json.dumps(asdict(churn))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def _churn(churn: Churn) -> dict[str, object]:
    context = client_context(Path(churn.ca))
    place = Place(churn.port, Path(churn.ca), context, churn.close)
    steady: dict[str, QuicListener | TcpListener] = {
        "quic": QuicListener(churn.port, Path(churn.ca), _STEADY),
        "tcp": TcpListener(churn.port, context, _STEADY),
    }
    began = time.monotonic()
    for each in steady.values():
        each.start()
    ends = began + churn.seconds
    async with asyncio.TaskGroup() as group:
        for number in range(churn.listeners):
            group.create_task(_place(churn, place, number, ends))
    await asyncio.sleep(max(0.0, ends - time.monotonic()))
    heard = {door: _steady(each, began + _SETTLE) for door, each in steady.items()}
    for each in steady.values():
        each.close()
    await asyncio.sleep(0.5)
    return {
        "steady": {door: asdict(each) for door, each in heard.items()},
        "visits": dict(sorted(place.done.items())),
        "troubles": dict(sorted(place.troubles.items())),
    }


async def _place(churn: Churn, place: Place, number: int, ends: float) -> None:
    """One of the listeners' places: somebody is there nearly all the time."""
    draw = Random(churn.seed * 1000 + number)
    door = "quic" if number % 2 else "tcp"
    await asyncio.sleep(draw.uniform(0, min(5.0, churn.seconds / 4)))
    while (left := ends - time.monotonic()) > 1.0:
        seconds = min(left, draw.uniform(1.0, churn.stay))
        try:
            await visit(place, draw, door, seconds)
        except (OSError, TimeoutError) as error:
            place.count(f"{door} visit", f"{type(error).__name__}: {error}"[:60])
            await asyncio.sleep(0.5)


def _steady(listener: QuicListener | TcpListener, since: float) -> Steady:
    heard = listener.heard
    gaps = sorted(gap * 1000 for gap in heard.gaps(since, 1)) or [0.0]
    return Steady(
        len(heard.times),
        round(gaps[len(gaps) // 2], 1),
        round(gaps[int(len(gaps) * 0.99)], 1),
        round(gaps[-1], 1),
        heard.missing,
        heard.duplicates,
        heard.trouble,
    )


def main() -> None:
    churn = Churn(**json.loads(sys.argv[1]))
    gc.freeze()
    json.dump(uvloop.run(_churn(churn)), sys.stdout)


if __name__ == "__main__":
    main()
