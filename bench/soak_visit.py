"""Listeners of the soak: each comes, does one thing, and leaves in one of many ways."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import struct
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from bench.load_quic import QuicListener
from bench.load_tcp import TcpListener
from bench.rude import NeverReads

__all__ = ["Place", "Visitor", "visit"]

_SOURCE = "source=counting&frames=100000"
_AUDIO = "lead=0.2&chunk=5"
_H3_REQUEST_CANCELLED = 0x10C
_STALLED = 12.0
"""Seconds after which a server has given up whoever took nothing."""


@dataclass(slots=True)
class Place:
    """Where the server is, and what was done to it so far."""

    port: int
    ca: Path
    context: ssl.SSLContext
    close: float
    """The share of sessions that their visitor closes; the others are left to expire.

    Not by lot: every twentieth, say. How many are kept would else be another number each time, and
    memory would grow with it.
    """
    done: dict[str, int] = field(default_factory=dict)
    troubles: dict[str, int] = field(default_factory=dict)
    _left: float = 0.0

    def closes(self) -> bool:
        """Whether this visitor closes its session."""
        self._left += 1.0 - self.close
        if self._left < 1.0:
            return True
        self._left -= 1.0
        return False

    def count(self, what: str, trouble: str) -> None:
        self.done[what] = self.done.get(what, 0) + 1
        if trouble:
            self.troubles[f"{what}: {trouble}"] = self.troubles.get(f"{what}: {trouble}", 0) + 1


class _QuicVisitor(QuicListener):
    def stop(self) -> None:
        """STOP_SENDING; the connection stays."""
        with contextlib.suppress(ValueError):  # It has ended already.
            self._quic.stop_stream(0, _H3_REQUEST_CANCELLED)
        self._transmit(time.monotonic())

    def close(self) -> None:
        """CONNECTION_CLOSE, where that is still to be said."""
        if self._socket.fileno() >= 0:
            super().close()

    def vanish(self) -> None:
        """Never heard of again."""
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()


class _TcpVisitor(TcpListener):
    def stop(self) -> None:
        """A RST; TCP knows nothing gentler that says as much."""
        if self._transport is not None:
            raw = self._transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        super().close()

    def close(self) -> None:
        """A FIN."""
        self._closing = True
        if self._transport is not None:
            self._transport.close()

    def hold(self, on: bool) -> None:
        """Read nothing for now, or go on."""
        if self._transport is not None and not self._transport.is_closing():
            with contextlib.suppress(RuntimeError):
                (self._transport.pause_reading if on else self._transport.resume_reading)()


Visitor = _QuicVisitor | _TcpVisitor


async def visit(place: Place, draw: Random, door: str, seconds: float) -> None:
    """One stay of about so many seconds."""
    what = draw.choice(sorted(_WAYS))
    session = str((await _post(place, f"/v1/sessions?{_SOURCE}"))["session"])
    stay = _Stay(place, draw, door, session, seconds)
    try:
        await _WAYS[what](stay)
    finally:
        for each in stay.open:
            each.close()
        place.count(f"{door} {what}", stay.trouble)
        if place.closes():
            await _post(place, f"/v1/sessions/{session}/control?command=close")


@dataclass(slots=True)
class _Stay:
    place: Place
    draw: Random
    door: str
    session: str
    seconds: float
    open: list[Visitor] = field(default_factory=list)
    trouble: str = ""

    def attach(self, door: str, *, begin: int | None = None, more: str = _AUDIO) -> Visitor:
        path = f"/v1/sessions/{self.session}/audio?listener=l&{more}"
        path += f"&from={begin}" if begin is not None else ""
        visitor: Visitor
        if door == "quic":
            visitor = _QuicVisitor(self.place.port, self.place.ca, path)
        else:
            visitor = _TcpVisitor(self.place.port, self.place.context, path)
        visitor.start()
        self.open.append(visitor)
        return visitor

    async def control(self, command: str) -> None:
        await _post(self.place, f"/v1/sessions/{self.session}/control?command={command}")

    def judge(self, visitor: Visitor) -> None:
        heard = visitor.heard
        if heard.trouble:
            self.trouble = heard.trouble[:60]
        elif not heard.times:
            self.trouble = "heard nothing"
        elif heard.missing or heard.duplicates:
            self.trouble = "frames missing or twice"


async def _fin(stay: _Stay) -> None:
    visitor = stay.attach(stay.door)
    await asyncio.sleep(stay.seconds)
    stay.judge(visitor)


async def _stop(stay: _Stay) -> None:
    visitor = stay.attach(stay.door)
    await asyncio.sleep(stay.seconds)
    stay.judge(visitor)
    visitor.stop()
    await asyncio.sleep(0.2)


async def _silence(stay: _Stay) -> None:
    visitor = stay.attach(stay.door)
    await asyncio.sleep(stay.seconds)
    stay.judge(visitor)
    if isinstance(visitor, _QuicVisitor):
        visitor.vanish()
        stay.open.remove(visitor)
    else:
        visitor.hold(True)
        await asyncio.sleep(_STALLED)


async def _never(stay: _Stay) -> None:
    path = f"/v1/sessions/{stay.session}/audio?listener=l&lead=max"
    if stay.door == "quic":
        await NeverReads(stay.place.port, stay.place.ca, path).run(stay.seconds)
        return
    visitor = stay.attach("tcp", more="lead=max")
    await asyncio.sleep(0.2)
    if isinstance(visitor, _TcpVisitor):
        visitor.hold(True)
    await asyncio.sleep(stay.seconds)


async def _slow(stay: _Stay) -> None:
    if stay.door == "quic":
        path = f"/v1/sessions/{stay.session}/audio?listener=l&lead=max"
        await NeverReads(stay.place.port, stay.place.ca, path, pace=20_000).run(stay.seconds)
        return
    visitor = stay.attach("tcp")
    await asyncio.sleep(0.5)
    for _ in range(int(stay.seconds)):
        assert isinstance(visitor, _TcpVisitor)
        visitor.hold(True)
        await asyncio.sleep(0.7)
        visitor.hold(False)
        await asyncio.sleep(0.3)
    stay.judge(visitor)


async def _resume(stay: _Stay) -> None:
    """Several legs of one listener, by turns on either door; nothing missing, nothing twice."""
    doors = [stay.door, "tcp" if stay.door == "quic" else "quic"]
    heard = 0
    for turn in range(4):
        visitor = stay.attach(doors[turn % 2], begin=heard)
        visitor.heard.next = heard
        await asyncio.sleep(stay.seconds / 4)
        stay.judge(visitor)
        heard = visitor.heard.next
        (visitor.stop if turn % 2 else visitor.close)()
        await asyncio.sleep(0.05)


async def _pause(stay: _Stay) -> None:
    visitor = stay.attach(stay.door)
    await asyncio.sleep(stay.seconds / 3)
    await stay.control("pause")
    await asyncio.sleep(stay.seconds / 3)
    await stay.control("resume")
    await asyncio.sleep(stay.seconds / 3)
    stay.judge(visitor)


async def _flush(stay: _Stay) -> None:
    visitor = stay.attach(stay.door)
    await asyncio.sleep(stay.seconds / 2)
    await stay.control(f"flush&{_SOURCE}")
    await asyncio.sleep(stay.seconds / 2)
    if visitor.heard.trouble:
        stay.trouble = visitor.heard.trouble[:60]


_WAYS: dict[str, Callable[[_Stay], Awaitable[None]]] = {
    "fin": _fin,
    "flush": _flush,
    "never reads": _never,
    "pause": _pause,
    "resume": _resume,
    "silence": _silence,
    "slow": _slow,
    "stop": _stop,
}


async def _post(place: Place, path: str) -> dict[str, object]:
    """An answer over HTTP/1.1 on a connection of its own, by nothing of ours."""
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", place.port, ssl=place.context, server_hostname="localhost"
        )
        try:
            writer.write(
                f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
                "Connection: close\r\n\r\n".encode()
            )
            answer = await reader.read()
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 20" not in head[:14]:
        place.count("post", head[:13].decode("latin-1"))
        return {"session": "none"}
    facts: dict[str, object] = json.loads(body)
    return facts
