"""Does a server stay as it is, while listeners come and go for half an hour?

A hundred places over both doors, each with one listener after the other: they join, leave by
FIN, RST, STOP_SENDING or silence, resume on the other door, pause, flush, read slowly or not
at all. Two listeners play from beginning to end beside them. What the server's process holds is
looked at from outside; the listeners live in a process of their own.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.process import ServerProcess
from bench.report import Figures, machine, progress
from bench.soak_load import Churn, start
from tenuto.tls import DevCertificates

__all__ = ["run", "slope"]

_MEBIBYTE = 1024 * 1024
_SAMPLE = 5.0
_RETENTION = 300.0
"""Seconds for which a server keeps the session of a listener who has left."""

_LIMIT = 1.0
"""MiB per ten minutes."""


@dataclass(frozen=True, slots=True)
class _Reading:
    at: float
    rss: float
    """MiB."""
    descriptors: int
    threads: int
    tasks: int
    sessions: int
    listeners: int

    @classmethod
    def of(cls, server: ServerProcess, began: float) -> _Reading:
        health = json.loads(server.get("/healthz", timeout=30))
        process = Path(f"/proc/{server.process.pid}")
        return cls(
            time.monotonic() - began,
            server.rss / _MEBIBYTE,
            len(os.listdir(process / "fd")),
            len(os.listdir(process / "task")),
            health["tasks"],
            health["sessions"],
            health["listeners"],
        )


def run(quick: bool, minutes: float = 30.0) -> Iterator[Figures]:
    """A line a minute, then the summary."""
    seconds = 20.0 if quick else minutes * 60
    # Sessions that are left to expire reach their steady number only after that time.
    warm_up = seconds / 4 if seconds < 2 * _RETENTION else _RETENTION + 60
    churn = (20 if quick else 100, 1.0 if quick else 0.95, 4.0 if quick else 15.0)
    with tempfile.TemporaryDirectory() as folder:
        DevCertificates(Path(folder)).ensure(datetime.now(UTC))
        server = ServerProcess(Path(folder))
        try:
            yield from _soak(server, seconds, warm_up, *churn)
        finally:
            server.stop()


def _soak(
    server: ServerProcess,
    seconds: float,
    warm_up: float,
    listeners: int,
    close: float,
    stay: float,
) -> Iterator[Figures]:
    began = time.monotonic()
    server.get("/v1/speak?text=Good+morning")  # What is loaded once is loaded now.
    time.sleep(1.0)
    before = _Reading.of(server, began)
    load = start(Churn(server.port, str(server.ca), listeners, seconds, stay, close, seed=1))
    readings: list[_Reading] = []
    told = 0
    with progress("soak") as bar:
        while load.poll() is None:
            time.sleep(_SAMPLE if seconds > 60 else 1.0)
            readings.append(_Reading.of(server, began))
            bar(min(1.0, readings[-1].at / seconds))
            if readings[-1].at // 60 > told:
                told = int(readings[-1].at // 60)
                yield _line(readings[-1])
    heard = _outcome(load)
    after = _back(server, began, before, 15.0 if close == 1 else _RETENTION + 30)
    grown, interval = slope([(r.at / 600, r.rss) for r in readings if r.at >= warm_up])
    yield {
        "bench": "soak",
        "summary": True,
        "minutes": round(seconds / 60, 1),
        "listeners": listeners,
        "warm_up_seconds": round(warm_up),
        "rss_mib": {"before": round(before.rss, 1), "after": round(after.rss, 1)},
        "rss_slope_mib_per_10_min": round(grown, 3),
        "rss_slope_interval": [round(grown - interval, 3), round(grown + interval, 3)],
        "rss_slope_limit": _LIMIT,
        "before": _counts(before),
        "after": _counts(after),
        "most": _counts(max(readings, key=lambda r: r.sessions)),
        "faults": sum(line.get("event") == "PeerFaulted" for line in list(server.log)),
        **heard,
        **machine(),
    }


def slope(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """By least squares, with the half width of its 95 % interval.

    Points lie in twenty blocks, of which the means count: neighbours are too alike to be as
    many witnesses.
    """
    size = max(1, len(points) // 20)
    blocks = [points[n : n + size] for n in range(0, len(points) - size + 1, size)]
    if len(blocks) < 3:
        return 0.0, float("inf")
    x = [statistics.fmean(at for at, _ in block) for block in blocks]
    y = [statistics.fmean(value for _, value in block) for block in blocks]
    gained, offset = statistics.linear_regression(x, y)
    free = len(blocks) - 2
    left = sum((b - gained * a - offset) ** 2 for a, b in zip(x, y, strict=True))
    middle = statistics.fmean(x)
    error = (left / free / sum((a - middle) ** 2 for a in x)) ** 0.5
    return gained, _student(free) * error


def _student(free: int) -> float:
    """The 97.5 % point of Student's t, to a hundredth from 5 degrees of freedom on."""
    return 1.96 + 2.37 / free + 2.8 / free**2 + 3.0 / free**3


def _back(server: ServerProcess, began: float, before: _Reading, patience: float) -> _Reading:
    """As soon as all is as it was, or when patience ends."""
    deadline = time.monotonic() + patience
    while True:
        reading = _Reading.of(server, began)
        pairs = zip(_counts(reading).values(), _counts(before).values(), strict=True)
        if all(now <= then for now, then in pairs) or time.monotonic() > deadline:
            return reading
        time.sleep(1.0)


def _counts(reading: _Reading) -> dict[str, int]:
    return {
        "tasks": reading.tasks,
        "descriptors": reading.descriptors,
        "threads": reading.threads,
        "sessions": reading.sessions,
        "listeners": reading.listeners,
    }


def _line(reading: _Reading) -> Figures:
    return {
        "bench": "soak",
        "seconds": round(reading.at),
        "rss_mib": round(reading.rss, 1),
        **_counts(reading),
    }


def _outcome(load: subprocess.Popen[str]) -> dict[str, object]:
    said, _ = load.communicate()
    if load.returncode != 0:
        raise RuntimeError(f"the listeners failed with status {load.returncode}")
    heard: dict[str, object] = json.loads(said)
    return heard
