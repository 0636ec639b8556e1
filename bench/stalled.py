"""What a listener that stands still costs, and what of its audio is hidden below the session.

Memory: in a fresh server one session is played to its end, so that its ring is full and grows no
more: it is the session's, and all clients share it. Ten that stand still come and go, for what is
imported and made once is nobody's cost. Then so many clients connect and are idle; then each asks
for that session as fast as it comes and takes nothing, or next to nothing. What a client costs is
the most that the server's resident memory exceeds the idle state afterwards, divided by the
clients. It is the operating system's figure, allocators' waste and all; what was freed is not given
back to it in every case, so it errs towards too much. Two servers are measured at a time.

Hidden audio: the frames that the session counts as sent, less those that the clients' kernels or
connections hold already: what asyncio, TLS, the QUIC connection and the kernel keep.

Neighbours: ten listeners that play, five on each door, with and without twenty that stand still,
in turns; the medians are compared, for one round is as good as the machine is quiet.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from math import inf
from pathlib import Path
from statistics import median
from typing import TypeAlias

from bench.first_audio_figures import percentile
from bench.load import Load, Outcome, generate
from bench.process import ServerProcess
from bench.report import Figures, machine
from bench.rude import QUIC_KINDS, NeverReads, StalledTcp
from tenuto.tls import DevCertificates

__all__ = ["run"]

_FORMATS = {
    "24 kbit/s": (1500, 1),
    "PCM 16 kHz": (16000, 1),
    "PCM 48 kHz stereo": (48000, 2),
}
"""By name: samples/s and channels of 16-bit samples."""

_SECONDS = 9
"""Of audio in the session: less than its ring holds."""

_BEFORE = 10
"""Clients that stand still and go before anything is counted."""

_CREDIT = {"STOP_SENDING": "reads nothing"}
"""By the way to stand still: whose credit its clients give, where it is another's."""

_LIMITS = {"tcp": 64 * 1024, "quic": 128 * 1024}
"""Bytes that a stalled listener may cost."""

_MOST_HIDDEN = {"tcp": 2.0, "quic": 2.2}
"""Seconds: on QUIC the lead, 200 ms and two round trips, of which loopback has none to speak of."""

_MOST_LATER = 5.0
"""Milliseconds that the gaps of others may grow by."""

Client: TypeAlias = NeverReads | StalledTcp


def run(quick: bool) -> Iterator[Figures]:
    """A line for each way to stand still and each format, one for the neighbours, a summary."""
    count, seconds = (10, 13.0) if quick else (25, 60.0)
    with tempfile.TemporaryDirectory() as folder:
        certificates = Path(folder)
        DevCertificates(certificates).ensure(datetime.now(UTC))
        lines = []
        cells = _cells(quick)
        for pair in zip_longest(cells[::2], cells[1::2]):
            at_once = [cell for cell in pair if cell is not None]
            for line in asyncio.run(_measure_all(certificates, at_once, count, seconds)):
                lines.append(line)
                yield line
        neighbours = asyncio.run(_beside(certificates, quick))
        yield neighbours
    yield _summary(lines, neighbours, count, seconds)


def _cells(quick: bool) -> list[tuple[str, str, str]]:
    forms = list(_FORMATS)
    cells = [("tcp", "reads nothing", form) for form in forms]
    cells.append(("tcp", "1 kB/s", forms[-1]))
    cells += [("quic", "reads nothing", form) for form in forms]
    if not quick:
        others = [kind for kind in QUIC_KINDS if kind != "reads nothing"]
        cells += [("quic", kind, forms[-1]) for kind in [*others, "STOP_SENDING"]]
    return cells


async def _measure_all(
    certificates: Path, cells: list[tuple[str, str, str]], count: int, seconds: float
) -> list[Figures]:
    return await asyncio.gather(*(_measure(certificates, *cell, count, seconds) for cell in cells))


async def _measure(
    certificates: Path, transport: str, kind: str, form: str, count: int, seconds: float
) -> Figures:
    server = await asyncio.to_thread(ServerProcess, certificates)
    try:
        rate, channels = _FORMATS[form]
        path = await asyncio.to_thread(_whole_session, server, rate, channels)
        await _come_and_go([_client(transport, kind, server, path) for _ in range(_BEFORE)], kind)
        clients = [_client(transport, kind, server, path) for _ in range(count)]
        running = [asyncio.create_task(_run(client, kind, seconds + 8.0)) for client in clients]
        await asyncio.sleep(3.0)
        idle, sent = server.rss, await _sent(server)
        for client in clients:
            client.ask()
        most, hidden, began = 0, 0.0, time.monotonic()
        while time.monotonic() < began + seconds:
            await asyncio.sleep(0.25)
            most = max(most, server.rss - idle)
            if kind == "reads nothing" and time.monotonic() < began + 8.0:
                taken = (await _sent(server) - sent) / count
                hidden = max(hidden, taken * 0.020 - _arrived(clients, rate * channels * 2))
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        line: dict[str, object] = {
            "bench": "stalled",
            "transport": transport,
            "kind": kind,
            "format": form,
            "clients": count,
            "seconds": seconds,
            "kib_each": round(most / count / 1024, 1),
            "of_the_limit": round(most / count / _LIMITS[transport], 2),
        }
        if kind == "reads nothing":
            line["hidden_seconds"] = round(hidden, 2)
            line["hidden_of_the_limit"] = round(hidden / _MOST_HIDDEN[transport], 2)
        return line
    finally:
        server.stop()


async def _come_and_go(clients: Sequence[Client], kind: str) -> None:
    for client in clients:
        client.ask()
    await asyncio.gather(*(_run(client, kind, 3.0) for client in clients))
    await asyncio.sleep(1.0)


def _whole_session(server: ServerProcess, rate: int, channels: int) -> str:
    """The path of a session that has been played to its end."""
    query = f"source=counting&frames={_SECONDS * 50}&rate={rate}&channels={channels}"
    session = server.post(f"/v1/sessions?{query}")["session"]
    path = f"/v1/sessions/{session}/audio?lead=max"
    server.get(path)
    return path


def _client(transport: str, kind: str, server: ServerProcess, path: str) -> Client:
    if transport == "tcp":
        return StalledTcp(server.port, server.ca, path, pace=1000 if kind == "1 kB/s" else 0)
    return QUIC_KINDS[_CREDIT.get(kind, kind)](server.port, server.ca, path)


async def _run(client: Client, kind: str, seconds: float) -> None:
    if kind == "STOP_SENDING" and isinstance(client, NeverReads):
        await client.run(seconds, stop_sending_after=1.0)
    else:
        await client.run(seconds)


async def _sent(server: ServerProcess) -> float:
    return await asyncio.to_thread(server.metric, "host_frames_sent_total")


def _arrived(clients: Sequence[Client], bytes_per_second: int) -> float:
    """Seconds of audio that have left the server behind, by the client that has least."""
    frame = bytes_per_second // 50
    # A frame's share of a chunk's framing and of TLS, or of HTTP/3's.
    return min(client.received / (frame + 11) for client in clients) * 0.020


async def _beside(certificates: Path, quick: bool) -> Figures:
    """The gaps of listeners that play, alone and beside those that stand still."""
    turns, steady = (3, 4.0) if quick else (7, 6.0)
    gaps: dict[str, dict[str, list[float]]] = {}
    for turn in range(turns):
        for who in ("alone", "beside") if turn % 2 else ("beside", "alone"):
            heard = await _turn(certificates, who == "beside", steady)
            for transport, outcome in heard.items():
                gaps.setdefault(transport, {}).setdefault(who, []).append(_gap(outcome))
    middle = {
        transport: {who: round(median(values), 1) for who, values in each.items()}
        for transport, each in gaps.items()
    }
    return {"bench": "stalled", "kind": "neighbours", "gap_p99_ms": middle, "turns": gaps}


async def _turn(certificates: Path, beside: bool, steady: float) -> dict[str, Outcome]:
    server = await asyncio.to_thread(ServerProcess, certificates)
    try:
        query = "source=counting&frames=1000000&rate=48000&channels=2&lead=max"
        clients = [
            _client(transport, "reads nothing", server, f"/v1/speak?{query}")
            for transport in ("tcp", "quic")
            for _ in range(10 if beside else 0)
        ]
        running = [asyncio.create_task(client.run(90.0)) for client in clients]
        await asyncio.sleep(1.0)
        for client in clients:
            client.ask()
        loads = {name: _load(server, name, steady) for name in ("tcp", "quic")}
        heard = await asyncio.gather(
            *(asyncio.to_thread(generate, load) for load in loads.values())
        )
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        return dict(zip(loads, heard, strict=True))
    finally:
        server.stop()


def _load(server: ServerProcess, transport: str, steady: float) -> Load:
    return Load(
        transport=transport,
        port=server.port,
        ca=str(server.ca),
        server=server.process.pid,
        path="/v1/speak?source=counting&frames=1000000&lead=0.2&chunk=1",
        group=1,
        listeners=5,
        spread=1.0,
        settle=1.0,
        steady=steady,
    )


def _gap(heard: Outcome) -> float:
    """Milliseconds; infinite where somebody missed a frame."""
    gap = percentile(heard.gaps, 0.99)
    return inf if gap is None or heard.missing or heard.silent else gap


def _summary(lines: Sequence[Figures], neighbours: Figures, count: int, seconds: float) -> Figures:
    over = [
        f"{each['transport']} {each['kind']} {each['format']}: {name}"
        for each in lines
        for name in ("of_the_limit", "hidden_of_the_limit")
        if float(str(each.get(name, 0))) > 1
    ]
    gaps = neighbours["gap_p99_ms"]
    assert isinstance(gaps, dict)
    over += [
        f"{transport} neighbours"
        for transport, each in gaps.items()
        if not each["beside"] <= each["alone"] + _MOST_LATER
    ]
    return {
        "bench": "stalled",
        "summary": True,
        "clients": count,
        "seconds": seconds,
        "kib_each_at_most": {
            transport: max(
                float(str(each["kib_each"])) for each in lines if each["transport"] == transport
            )
            for transport in _LIMITS
        },
        "hidden_seconds": {
            f"{each['transport']} {each['format']}": each["hidden_seconds"]
            for each in lines
            if "hidden_seconds" in each
        },
        "neighbours_gap_p99_ms": gaps,
        "limits": {"bytes": _LIMITS, "hidden_seconds": _MOST_HIDDEN, "gap_ms": _MOST_LATER},
        "over": over,
        "met": not over,
        **machine(),
    }
