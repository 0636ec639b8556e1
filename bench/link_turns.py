"""Two ends on a road, and the turns that they are sent on."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.link_end import MEET, Order, Outcome
from bench.link_roads import Counts, Road

__all__ = ["Ends", "Load", "Turn"]

_TICKS = os.sysconf("SC_CLK_TCK")

_PRIORITY = 1
"""Of SCHED_FIFO, below the emulator."""

_LEAD = 0.03
"""Seconds for an order to arrive before it is to be begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is to pass in a turn."""

    rate: float
    """Packets a second, both ways together."""
    both: bool
    """Or up alone."""
    size: int
    seconds: float
    delay: float = 0.0
    stamped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What became of a load."""

    load: Load
    client: Outcome
    server: Outcome
    counts: Counts
    emulator: float
    """Of one core, while packets were sent."""
    others: float
    """Cores that processes other than ours had meanwhile."""

    @property
    def sent(self) -> int:
        return self.client.sent + self.server.sent

    @property
    def unintended(self) -> float:
        """The share of the packets that did not arrive though the profile let them."""
        missing = self.sent - self.counts.lost - self.client.received - self.server.received
        return missing / self.sent if self.sent else 0.0


class Ends:
    """A process at each end of a road; they end with this context."""

    def __init__(self, road: Road, flows: int) -> None:
        self.road = road
        self._turns = count(1)
        command = [sys.executable, "-m", "bench.link_end"]
        pipe = subprocess.PIPE
        self._server = road.server([*command, "server", road.host, "0"], stdin=pipe, stdout=pipe)
        self._client: subprocess.Popen[bytes] | None = None
        try:
            host, port = road.target(_hear(self._server)["port"])
            client = [*command, "client", host, str(port), str(flows)]
            self._client = road.client(client, stdin=pipe, stdout=pipe)
            self._hurry()
            _tell(self._client, MEET)
            _hear(self._client)
        except BaseException:
            self.close()
            raise

    def _hurry(self) -> None:
        """Let both ends run before other work, if the emulator does; they stay behind it.

        An ordinary process that the emulator pushes from its core waits there for milliseconds,
        until the kernel looks whether the other core is free.
        """
        assert self._client is not None
        if not self.road.first:
            return
        for process in (self._client, self._server):
            with contextlib.suppress(PermissionError):
                os.sched_setscheduler(process.pid, os.SCHED_FIFO, os.sched_param(_PRIORITY))

    def turn(self, load: Load) -> Turn:
        with _first() if self.road.first else contextlib.nullcontext():
            return self._turn(load)

    def _turn(self, load: Load) -> Turn:
        assert self._client is not None
        self.road.restart()
        grace = load.delay + (0.2 if load.stamped else 0.1)
        share = load.rate / 2 if load.both else load.rate
        begin = time.time() + _LEAD
        number = next(self._turns) % 65_536 or next(self._turns)
        for process, rate in ((self._client, share), (self._server, share if load.both else 0.0)):
            order = Order(
                turn=number,
                begin=begin,
                seconds=load.seconds,
                grace=grace,
                rate=rate,
                size=load.size,
                stamped=load.stamped,
            )
            _tell(process, json.dumps(asdict(order)))
        pids = [self._client.pid, self._server.pid, os.getpid()]
        time.sleep(max(0.0, begin - time.time()))
        before = _Usage.now(self.road.emulator, pids)
        time.sleep(load.seconds)
        used = _Usage.now(self.road.emulator, pids).since(before)
        client, server = (Outcome.of(_line(each)) for each in (self._client, self._server))
        return Turn(
            load=load,
            client=client,
            server=server,
            counts=self.road.counts(),
            emulator=used.emulator / used.at,
            others=max(0.0, used.busy - used.emulator - used.ours) / used.at,
        )

    def close(self) -> None:
        for process in (self._client, self._server):
            if process is not None:
                process.kill()
                process.wait()
                for pipe in (process.stdin, process.stdout):
                    assert pipe is not None
                    pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@contextlib.contextmanager
def _first() -> Iterator[None]:
    """This thread runs before both ends meanwhile: it reads the clocks of all at the right time."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY + 1))
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


@dataclass(frozen=True, slots=True)
class _Usage:
    """Seconds of CPU time."""

    at: float
    emulator: float
    ours: float
    """The ends and the bench itself."""
    busy: float
    """Of all cores, by any process, or by a neighbour of this virtual machine."""

    @classmethod
    def now(cls, emulator: int | None, ours: list[int]) -> _Usage:
        with open("/proc/stat", encoding="ascii") as stat:
            user, nice, system, _, _, _, _, steal = map(int, stat.readline().split()[1:9])
        return cls(
            time.monotonic(),
            0.0 if emulator is None else _seconds(emulator),
            sum(map(_seconds, ours)),
            (user + nice + system + steal) / _TICKS,
        )

    def since(self, earlier: _Usage) -> _Usage:
        return _Usage(
            self.at - earlier.at,
            self.emulator - earlier.emulator,
            self.ours - earlier.ours,
            self.busy - earlier.busy,
        )


def _seconds(process: int) -> float:
    stat = Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS


def _tell(process: subprocess.Popen[bytes], order: str) -> None:
    assert process.stdin is not None
    process.stdin.write(order.encode() + b"\n")
    process.stdin.flush()


def _line(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"an end of the road ended with {process.wait()}")
    return line.decode()


def _hear(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(_line(process))
    return answer
