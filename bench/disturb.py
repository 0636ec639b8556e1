"""Who pays for a rude listener: stalled clients come and go beside two that play.

Each round one client asks for 48 kHz stereo as fast as it can get it, reads nothing and
leaves: over TCP by FIN and by RST in turn, over QUIC by silence and by STOP_SENDING in turn.
Beside them two listeners play a tone with 200 ms of lead, one on each door. A frame's
lateness is how much later it came than it would have with the smallest delay of the run; the
TCP door sends chunks of five frames, so up to 100 ms of that is its rhythm. A machine with
two cores runs the server, the listeners and the rude clients, so the same run is also
measured without the rude ones.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.listening import Heard, listen
from bench.process import ServerProcess
from bench.report import Figures, machine, rounds
from bench.rude import NeverReads, stall_and_leave
from tenuto.tls import DevCertificates

__all__ = ["run"]

_STREAM = "/v1/speak?source=counting&frames=100000&rate=48000&channels=2&lead=max"
_PLAY = {"tone": "440", "seconds": "600", "lead": "0.2"}
_MEBIBYTE = 1024 * 1024


def run(quick: bool) -> Iterator[Figures]:
    """A line without rude clients and one for each kind, then the summary."""
    count, stall = (5, 0.5) if quick else (50, 3.0)
    with tempfile.TemporaryDirectory() as folder:
        DevCertificates(Path(folder)).ensure(datetime.now(UTC))
        lines = []
        for kind in ("nobody", "tcp", "quic"):
            line = asyncio.run(_measure(kind, Path(folder), count, stall))
            lines.append(line)
            yield line
    quiet, tcp, quic = lines
    yield {
        "bench": "disturb",
        "summary": True,
        "rounds": count,
        "stall_seconds": stall,
        "longest_gap_ms": {"nobody": quiet["gap_ms"], "tcp": tcp["gap_ms"], "quic": quic["gap_ms"]},
        "rss_growth_mib": {"tcp": tcp["rss_growth_mib"], "quic": quic["rss_growth_mib"]},
        **machine(),
    }


async def _measure(kind: str, certificates: Path, count: int, stall: float) -> dict[str, object]:
    server = ServerProcess(certificates)
    try:
        seconds = count * stall + 3.0
        listeners = [
            asyncio.create_task(listen(server.port, server.ca, _PLAY, transport=t, seconds=seconds))
            for t in ("quic", "tcp")
        ]
        await asyncio.sleep(1.0)
        before = server.rss
        sizes, answers = [before], [0.0]
        for number in rounds(count, f"rude clients: {kind}"):
            await _rude(kind, server, number, stall)
            began = time.monotonic()
            await asyncio.to_thread(server.get, "/metrics")
            answers.append(time.monotonic() - began)
            sizes.append(server.rss)
        heard = await asyncio.gather(*listeners)
        return {
            "bench": "disturb",
            "rude": kind,
            "gap_ms": {"quic": _gap(heard[0]), "tcp": _gap(heard[1])},
            "late_ms": {"quic": _lateness(heard[0]), "tcp": _lateness(heard[1])},
            "missing": [not each.complete for each in heard].count(True),
            "metrics_answer_ms": round(max(answers) * 1000, 1),
            "rss_growth_mib": round((max(sizes) - before) / _MEBIBYTE, 1),
            "rss_second_half_mib": round((sizes[-1] - sizes[len(sizes) // 2]) / _MEBIBYTE, 1),
        }
    finally:
        server.stop()


async def _rude(kind: str, server: ServerProcess, number: int, stall: float) -> None:
    odd = number % 2 == 1
    if kind == "tcp":
        await asyncio.to_thread(
            stall_and_leave, server.port, server.ca, _STREAM, seconds=stall, abort=odd
        )
    elif kind == "quic":
        client = NeverReads(server.port, server.ca, _STREAM)
        await client.run(stall, stop_sending_after=stall / 2 if odd else None)
    else:
        await asyncio.sleep(stall)


def _gap(heard: Heard) -> float:
    return round(heard.longest_gap * 1000, 1)


def _lateness(heard: Heard) -> float:
    """The worst, against the schedule of the least delayed frame after the lead was built."""
    steady = list(zip(heard.times, heard.sequences, strict=True))[20:]
    offsets = [time - 0.020 * sequence for time, sequence in steady]
    return round((max(offsets) - min(offsets)) * 1000, 1)
