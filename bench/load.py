"""Many listeners in a process of their own: `python -m bench.load JSON` prints what they heard.

It also reads what the server's process and the whole machine used meanwhile, at the instants
between which it counts.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop

from bench.load_quic import QuicListener
from bench.load_reader import Listener
from bench.load_tcp import TcpListener, client_context

__all__ = ["Load", "Outcome", "Usage", "generate"]

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Load:
    """Times in seconds. Listeners start evenly over `spread`; counting begins `settle` after
    the last one and lasts for `steady`.
    """

    transport: str
    port: int
    ca: str
    server: int
    """Process id."""
    path: str
    group: int
    listeners: int
    spread: float
    settle: float
    steady: float


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds of CPU time since some instant."""

    at: float
    server: float
    generator: float
    busy: float
    """Of all cores, by anybody."""

    @classmethod
    def now(cls, server: int) -> Usage:
        own = os.times()
        with open("/proc/stat", encoding="ascii") as stat:
            fields = [int(field) for field in stat.readline().split()[1:9]]
        idle = fields[3] + fields[4]
        return cls(
            time.monotonic(),
            _process_seconds(server),
            own.user + own.system,
            (sum(fields) - idle) / _TICKS,
        )

    def since(self, earlier: Usage) -> Usage:
        """What was used from then to now; `at` is the time between."""
        return Usage(
            self.at - earlier.at,
            self.server - earlier.server,
            self.generator - earlier.generator,
            self.busy - earlier.busy,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a load heard; times in seconds, a value for each listener or each group."""

    handshake: list[float]
    first: list[float]
    """From the request on a finished handshake to the first frame."""
    connect_to_first: list[float]
    gaps: list[float]
    lateness: list[float]
    frames: int
    """In the steady window."""
    missing: int
    duplicates: int
    silent: int
    """Listeners that got no frame at all."""
    troubles: list[str]
    usage: Usage

    @classmethod
    def of(cls, text: str) -> Outcome:
        values = json.loads(text)
        return cls(**{**values, "usage": Usage(**values["usage"])})


def generate(load: Load) -> Outcome:
    """Run a load in a new process and wait for it."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.load", json.dumps(asdict(load))],
        capture_output=True,
        text=True,
        check=False,
        timeout=60 + load.spread + load.settle + load.steady,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the load generator failed:\n{done.stderr}")
    return Outcome.of(done.stdout)


async def _listen(load: Load) -> Outcome:
    make = _maker(load)
    await _warm(make())
    listeners: list[QuicListener | TcpListener] = []
    began = time.monotonic()
    for number in range(load.listeners):
        await _until(began + load.spread * number / load.listeners)
        listeners.append(make())
        listeners[-1].start()
    await _until(began + load.spread + load.settle)
    before = Usage.now(load.server)
    await _until(before.at + load.steady)
    after = Usage.now(load.server)
    for listener in listeners:
        listener.close()
    heard = [listener.heard for listener in listeners]
    return _outcome(load, heard, before, after)


async def _warm(listener: QuicListener | TcpListener) -> None:
    """One that does not count: the first handshake of a process pays for what is made once."""
    listener.start()
    deadline = time.monotonic() + 2.0
    # Nobody tells a listener's end to us.
    while not listener.heard.times and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    listener.close()


def _maker(load: Load) -> Callable[[], QuicListener | TcpListener]:
    ca = Path(load.ca)
    if load.transport == "quic":
        return lambda: QuicListener(load.port, ca, load.path)
    context = client_context(ca)
    return lambda: TcpListener(load.port, context, load.path)


async def _until(instant: float) -> None:
    await asyncio.sleep(max(0.0, instant - time.monotonic()))


def _outcome(load: Load, heard: list[Listener], before: Usage, after: Usage) -> Outcome:
    playing = [each for each in heard if each.times]
    since = before.at
    return Outcome(
        handshake=[each.connected - each.began for each in heard if each.connected],
        first=[each.times[0] - each.connected for each in playing],
        connect_to_first=[each.times[0] - each.began for each in playing],
        gaps=[gap for each in playing for gap in each.gaps(since, load.group)],
        lateness=[late for each in playing for late in each.lateness(since, load.group)],
        frames=sum(at >= since for each in playing for at in each.times),
        missing=sum(each.missing for each in heard),
        duplicates=sum(each.duplicates for each in heard),
        silent=len(heard) - len(playing),
        troubles=sorted({each.trouble for each in heard if each.trouble}),
        usage=after.since(before),
    )


def _process_seconds(process: int) -> float:
    """User and system time of all its threads."""
    stat = Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS


def main() -> None:
    load = Load(**json.loads(sys.argv[1]))
    # A full collection among so many objects would look like a late frame.
    gc.freeze()
    gc.disable()
    outcome = uvloop.run(_listen(load))
    json.dump(asdict(outcome), sys.stdout)


if __name__ == "__main__":
    main()
