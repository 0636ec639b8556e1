"""Is a word lost when connections are: cuts and changes of transport at random moments.

Listeners play one file of noise, each through a relay of its own. TCP is cut by RST to both
sides, QUIC by closing the relay's port: what is under way is lost, and ICMP tells the client.
Then the client goes on by itself; what it got is held against the file, byte by byte. With a
change of transport it opens the other one beside and goes over at its first frame.

The first frame is reckoned from the end of the new handshake, on loopback and with an RTT
that the relay makes. The promise is one RTT and 20 ms.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import wave
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles

from bench.cutting import CuttingRelay, cutting_relay
from bench.process import ServerProcess
from bench.report import Figures, machine, progress
from tenuto.client import (
    Event,
    Interrupted,
    Moved,
    PathStore,
    Resumed,
    Stream,
    Transport,
    Trust,
    open_stream,
)
from tenuto.errors import TenutoError
from tenuto.tls import DevCertificates

__all__ = ["run"]

_RATE = 16000
_SEED = 20
_ALLOWED = 0.020
"""Seconds beyond one RTT in which the first frame is due."""
_RTT = 0.080
_LOOK = 0.002
"""Seconds between two looks at this process's own lag."""
_NOTICED = 20.0
"""Seconds in which a cut is noticed, at most; QUIC's idle time-out is less."""


class Lag:
    """How late this process's own timers were of late: the listeners and relays share it."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, float]] = deque(maxlen=1024)

    async def watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _LOOK
            await asyncio.sleep(_LOOK)
            self._looks.append((due, loop.time() - due))

    def within(self, seconds: float) -> float:
        """The longest time in the last `seconds` in which nothing else ran."""
        now = asyncio.get_running_loop().time()
        looks = [lag for due, lag in self._looks if due + lag >= now - seconds]
        # The present look is late already where its time has passed.
        pending = now - (self._looks[-1][0] + self._looks[-1][1] + _LOOK) if self._looks else 0.0
        return max(0.0, pending, *looks)


@dataclass
class Told:
    """What happened to one listener."""

    lag: Lag
    kills: int = 0
    seen: asyncio.Event = field(default_factory=asyncio.Event)
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    gaps: list[float] = field(default_factory=list)
    first_frames: list[float] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)
    """This process's own within the time of each first frame."""
    ways: list[str] = field(default_factory=list)

    def event(self, event: Event) -> None:
        if isinstance(event, Interrupted):
            self.flowing.clear()
            self.seen.set()
        elif isinstance(event, Resumed):
            self.flowing.set()
            self.gaps.append(event.gap)
            self._first(event.gap - event.handshake)
            self.ways.append(event.transport)
        elif isinstance(event, Moved):
            self._first(event.first_frame - event.handshake)
            self.ways.append(event.transport)

    def _first(self, seconds: float) -> None:
        self.first_frames.append(seconds)
        self.lags.append(self.lag.within(seconds))

    def late(self, allowed: float) -> list[bool]:
        """One for each first frame that was: whether it would not have been but for the lag."""
        each = zip(self.first_frames, self.lags, strict=True)
        return [first - lag <= allowed for first, lag in each if first > allowed]


@dataclass(frozen=True, slots=True)
class Plan:
    """One kind of trouble: so many listeners, so many times each."""

    what: str
    transport: Transport
    listeners: int
    times: int
    seconds: float
    rtt: float


def run(quick: bool) -> Iterator[Figures]:
    """A line for each kind of trouble and RTT, then the summary."""
    # Few at a time: they share a process, and a handshake of one is a delay of the others.
    many, few, times = (4, 4, 5) if quick else (8, 4, 25)
    seconds = 16.0 if quick else 70.0
    plans = []
    for rtt in (0.0, _RTT):
        # The whole count on loopback, a fifth of it for the figure with an RTT.
        share = 1 if rtt == 0 else 5
        plans += [
            Plan("kill", "quic", max(2, many // share), times, seconds, rtt),
            Plan("kill", "tcp", max(2, many // share), times, seconds, rtt),
            Plan("move", "quic", max(2, few // share), times, seconds, rtt),
        ]
    lines: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        certificates, media = Path(folder, "certs"), Path(folder, "media")
        DevCertificates(certificates).ensure(datetime.now(UTC))
        media.mkdir()
        pcm = _noise(media / "noise.wav", seconds)
        server = ServerProcess(certificates, "--media", str(media))
        try:
            for number, plan in enumerate(plans):
                line = asyncio.run(_measure(server, plan, pcm, _SEED + number))
                lines.append(line)
                yield line
        finally:
            server.stop()
    yield {
        "bench": "resume",
        "summary": True,
        **{name: sum(int(str(line[name])) for line in lines) for name in _COUNTS},
        "first_frame_ms": {_name(line): line["first_frame_ms"] for line in lines},
        "gap_ms": {_name(line): line["gap_ms"] for line in lines if line["what"] == "kill"},
        **machine(),
    }


_COUNTS = (
    "kills",
    "moves",
    "missing",
    "duplicates",
    "not_identical",
    "first_frame_late",
    "late_by_own_lag",
)


def _name(line: Figures) -> str:
    return f"{line['what']} {line['transport']}, RTT {line['rtt_ms']} ms"


def _noise(path: Path, seconds: float) -> bytes:
    pcm = random.Random(_SEED).randbytes(round(seconds * _RATE) * 2)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_RATE)
        file.writeframes(pcm)
    return pcm


async def _measure(server: ServerProcess, plan: Plan, pcm: bytes, seed: int) -> dict[str, object]:
    draws = random.Random(seed)
    done = 0
    lag = Lag()
    watch = asyncio.create_task(lag.watch())
    with progress(f"{plan.what} {plan.transport}, RTT {plan.rtt * 1000:.0f} ms") as tell:

        def step() -> None:
            nonlocal done
            done += 1
            tell(done / (plan.listeners * plan.times))

        outcomes = await asyncio.gather(
            *(
                _listener(server, plan, Told(lag), random.Random(draws.random()), pcm, step)
                for _ in range(plan.listeners)
            )
        )
    watch.cancel()
    tolds = [told for told, _ in outcomes]
    late = [own for told in tolds for own in told.late(plan.rtt + _ALLOWED)]
    kills = sum(told.kills for told in tolds)
    first = [each for told in tolds for each in told.first_frames]
    return {
        "bench": "resume",
        "what": plan.what,
        "transport": plan.transport if plan.what == "kill" else "both",
        "rtt_ms": round(plan.rtt * 1000),
        "seed": seed,
        "kills": kills if plan.what == "kill" else 0,
        "moves": len(first) if plan.what == "move" else 0,
        "missing": sum(result["missing"] for _, result in outcomes),
        "duplicates": sum(result["duplicates"] for _, result in outcomes),
        "not_identical": sum(result["not_identical"] for _, result in outcomes),
        "first_frame_ms": _spread(first),
        "first_frame_late": len(late),
        "late_by_own_lag": sum(late),
        "gap_ms": _spread([gap for told in tolds for gap in told.gaps]),
    }


def _spread(values: list[float]) -> dict[str, float]:
    if len(values) < 2:
        return {}
    marks = quantiles(values, n=20)
    named = {"median": median(values), "p95": marks[-1], "most": max(values)}
    return {name: round(value * 1000, 1) for name, value in named.items()}


async def _listener(
    server: ServerProcess,
    plan: Plan,
    told: Told,
    draws: random.Random,
    pcm: bytes,
    step: Callable[[], None],
) -> tuple[Told, dict[str, int]]:
    told.flowing.set()
    heard, sequences = bytearray(), []
    await asyncio.sleep(draws.random())
    async with (
        cutting_relay(server.port, plan.rtt / 2) as relay,
        open_stream(
            f"https://localhost:{relay.port}/v1/speak",
            params={"file": "noise.wav", "lead": 2},
            transport=plan.transport,
            trust=Trust(cafile=server.ca),
            on_event=told.event,
            memory=PathStore(),
        ) as stream,
    ):
        trouble = asyncio.create_task(_trouble(plan, relay, stream, told, draws, step))
        try:
            async for frame in stream:
                heard += frame.payload
                sequences.append(frame.sequence)
        except TenutoError as error:
            print(error, file=sys.stderr)
        await trouble
    whole = len(pcm) // 640
    return told, {
        "missing": whole - len(set(sequences)),
        "duplicates": len(sequences) - len(set(sequences)),
        "not_identical": int(bytes(heard) != pcm),
    }


async def _trouble(
    plan: Plan,
    relay: CuttingRelay,
    stream: Stream,
    told: Told,
    draws: random.Random,
    step: Callable[[], None],
) -> None:
    # All of it must be over before the end of the file is sent: the rest is a margin.
    pause = 0.5 * plan.seconds / plan.times
    for _ in range(plan.times):
        await asyncio.sleep(draws.uniform(0.1, pause))
        if stream.complete:
            return
        if plan.what == "move":
            await stream.move("tcp" if stream.transport == "quic" else "quic")
        else:
            await _kill(plan, relay, stream, told)
        step()


async def _kill(plan: Plan, relay: CuttingRelay, stream: Stream, told: Told) -> None:
    async with asyncio.timeout(_NOTICED):
        await told.flowing.wait()  # what is not there cannot be cut
    told.seen.clear()
    told.kills += 1
    if plan.transport == "tcp":
        relay.reset_tcp()
    else:
        relay.close_udp()
    async with asyncio.timeout(_NOTICED):
        await told.seen.wait()
    if plan.transport == "quic":
        await relay.open_udp()
