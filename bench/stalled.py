"""What a listener that stands still costs, and what of its audio is hidden below the session.

Memory: in a fresh server one session is played to its end, so that its ring is full and grows no
more. Then so many clients connect, are answered once and are idle; then each asks for that session
as fast as it comes and takes nothing, or next to nothing. What a client costs is the most that the
server's resident memory exceeds the idle state afterwards, divided by the clients. It is the
operating system's figure, allocators' waste and all; what was freed is not given back to it in
every case, so it errs towards too much.

Hidden audio: the frames that the session counts as sent, less those that the clients' kernels or
connections hold already: what asyncio, TLS, the QUIC connection and the kernel keep.

Neighbours: ten listeners that play, five on each door, with and without twenty that stand still.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
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
        for transport, kind, form in _cells(quick):
            lines.append(asyncio.run(_measure(certificates, transport, kind, form, count, seconds)))
            yield lines[-1]
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


async def _measure(
    certificates: Path, transport: str, kind: str, form: str, count: int, seconds: float
) -> Figures:
    server = ServerProcess(certificates)
    try:
        rate, channels = _FORMATS[form]
        path = await asyncio.to_thread(_whole_session, server, rate, channels)
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
    gaps: dict[str, dict[str, float | None]] = {}
    for who in ("alone", "beside"):
        server = ServerProcess(certificates)
        clients: list[Client] = []
        try:
            query = "source=counting&frames=1000000&rate=48000&channels=2&lead=max"
            if who == "beside":
                clients = [
                    _client(transport, "reads nothing", server, f"/v1/speak?{query}")
                    for transport in ("tcp", "quic")
                    for _ in range(10)
                ]
            running = [asyncio.create_task(client.run(90.0)) for client in clients]
            await asyncio.sleep(1.0)
            for client in clients:
                client.ask()
            loads = [_load(server, transport, quick) for transport in ("tcp", "quic")]
            with ThreadPoolExecutor() as pool:
                loop = asyncio.get_running_loop()
                heard = await asyncio.gather(
                    *(loop.run_in_executor(pool, generate, load) for load in loads)
                )
            gaps[who] = {"tcp": _gap(heard[0]), "quic": _gap(heard[1])}
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        finally:
            server.stop()
    return {"bench": "stalled", "kind": "neighbours", "gap_p99_ms": gaps}


def _load(server: ServerProcess, transport: str, quick: bool) -> Load:
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
        steady=6.0 if quick else 30.0,
    )


def _gap(heard: Outcome) -> float | None:
    if heard.missing or heard.silent:
        return None
    return percentile(heard.gaps, 0.99)


def _summary(lines: Sequence[Figures], neighbours: Figures, count: int, seconds: float) -> Figures:
    worst = {
        transport: max(
            float(str(each["kib_each"])) for each in lines if each["transport"] == transport
        )
        for transport in _LIMITS
    }
    return {
        "bench": "stalled",
        "summary": True,
        "clients": count,
        "seconds": seconds,
        "kib_each_at_most": worst,
        "hidden_seconds": {
            f"{each['transport']} {each['format']}": each["hidden_seconds"]
            for each in lines
            if "hidden_seconds" in each
        },
        "neighbours_gap_p99_ms": neighbours["gap_p99_ms"],
        "limits": {"bytes": _LIMITS, "hidden_seconds": _MOST_HIDDEN, "gap_ms": _MOST_LATER},
        **machine(),
    }
