"""First audio and steady pace of both doors, beside bare servers on the same libraries.

Every listener has its own connection and its own session of numbered 640-byte frames. Our QUIC
door is measured beside a bare aioquic, our TCP door beside a bare hypercorn, in turns at each
load (ours, peer, peer, ours), so that a busy machine changes both alike. The servers and the
listeners are processes of their own. docs/benchmarks.md says what the figures mean.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.first_audio_figures import Cell, compare, describe, skipped, summarise
from bench.load import Load, Outcome, generate
from bench.peers.process import PeerProcess
from bench.process import ServerProcess
from bench.report import Figures, machine, rounds
from tenuto.tls import DevCertificates, DevPair

__all__ = ["FULL", "QUICK", "Plan", "measure", "run"]

GROUPS = {"frames": 1, "groups": 5}
"""Frames that travel together, by the name of the pattern: 20 ms and 100 ms."""

PEERS = {"quic": "aioquic", "chunked": "hypercorn"}

_LISTENERS_PER_SECOND = 100
"""More handshakes in a second would be the load that is measured."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured; times in seconds, as in `Load`."""

    listeners: tuple[int, ...]
    spread: float
    settle: float
    steady: float
    turns: str
    """A round for each letter: `o` ours, `p` the peer."""
    transports: tuple[str, ...] = tuple(PEERS)
    patterns: tuple[str, ...] = tuple(GROUPS)


FULL = Plan((1, 50, 100, 200), spread=1.0, settle=2.0, steady=2.5, turns="oppo")
QUICK = Plan((1, 20), spread=0.2, settle=0.4, steady=0.9, turns="op")


def run(quick: bool) -> Iterator[Figures]:
    """Two lines for each load, ours with its ratio to the peer's, then the summary."""
    lines: list[Figures] = []
    for line in measure(QUICK if quick else FULL):
        lines.append(line)
        yield line
    yield {**summarise(lines), "quick": quick, **machine()}


def measure(plan: Plan) -> Iterator[Figures]:
    """The lines of a plan, without the summary."""
    with tempfile.TemporaryDirectory() as folder:
        pair = DevCertificates(Path(folder)).ensure(datetime.now(UTC))
        for transport in plan.transports:
            for pattern in plan.patterns:
                yield from _Bench(plan, transport, pattern, pair).lines()


class _Bench:
    """Our server and its peer at one transport and pattern, at growing loads."""

    def __init__(self, plan: Plan, transport: str, pattern: str, pair: DevPair) -> None:
        self._plan = plan
        self._transport = transport
        self._pattern = pattern
        self._pair = pair
        self._saturated: dict[str, int] = {}
        """At how many listeners each server, or its listeners, had enough."""

    def lines(self) -> Iterator[Figures]:
        certificate = self._pair.current
        ours = ServerProcess(self._pair.ca.chain_path.parent)
        try:
            name = f"bare_{PEERS[self._transport]}"
            peer = PeerProcess(name, certificate.chain_path, certificate.key_path)
            try:
                for listeners in self._plan.listeners:
                    yield from self._load({"o": ours, "p": peer}, listeners)
            finally:
                peer.stop()
        finally:
            ours.stop()

    def _load(
        self, servers: dict[str, ServerProcess | PeerProcess], listeners: int
    ) -> Iterator[Figures]:
        names = {"o": "tenuto", "p": PEERS[self._transport]}
        cells = {
            turn: Cell(self._transport, self._pattern, listeners, name)
            for turn, name in names.items()
        }
        turns = [turn for turn in self._plan.turns if names[turn] not in self._saturated]
        outcomes: dict[str, list[Outcome]] = {turn: [] for turn in turns}
        what = f"{self._transport} {self._pattern} {listeners}"
        for number in rounds(len(turns), what):
            turn = turns[number]
            outcomes[turn].append(generate(self._work(servers[turn], listeners)))
        lines = {}
        for turn, cell in cells.items():
            if turn in outcomes:
                lines[turn] = describe(
                    cell,
                    self._plan.steady,
                    outcomes[turn],
                    load_average=os.getloadavg()[0],
                    cores=os.cpu_count() or 1,
                )
                if lines[turn]["saturated"]:
                    self._saturated[cell.server] = listeners
            else:
                lines[turn] = skipped(cell, self._saturated[cell.server])
        yield {**lines["o"], "ratio_to_peer": compare(lines["o"], lines["p"])}
        yield lines["p"]

    def _work(self, server: ServerProcess | PeerProcess, listeners: int) -> Load:
        plan, group = self._plan, GROUPS[self._pattern]
        query = f"source=counting&frames=1000000&lead=0.2&chunk={group}"
        return Load(
            transport=self._transport,
            port=server.port,
            ca=str(self._pair.ca.chain_path),
            server=server.process.pid,
            path=f"/v1/speak?{query}",
            group=group,
            listeners=listeners,
            spread=max(plan.spread, listeners / _LISTENERS_PER_SECOND),
            settle=plan.settle,
            steady=plan.steady,
        )
