"""Opening a stream: QUIC first, TCP if it does not connect."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

from tenuto import __version__
from tenuto.client.advice import connect_error
from tenuto.client.errors import Failure, FailureKind, LegError
from tenuto.client.events import Event, EventLog, TransportChosen, TransportFailed
from tenuto.client.exchange import Leg, Request, Response, Timings, Transport, TransportChoice
from tenuto.client.problem import MAX_PROBLEM_SIZE, problem_error
from tenuto.client.quic import connect_quic
from tenuto.client.stream import Stream
from tenuto.client.target import Address, Target, Value, resolve
from tenuto.client.tcp import connect_tcp
from tenuto.client.trust import Trust
from tenuto.errors import ErrorCode, RequestError
from tenuto.wire import MEDIA_TYPE, VERSION

__all__ = ["DEADLINES", "Deadlines", "open_stream", "session_url"]


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds until a step is given up. ICMP or RST end it at once."""

    name: float = 10.0
    """The look-up of the host's addresses."""
    quic: float = 2.0
    """QUIC's handshake, over all addresses, while TCP is there to follow."""
    quic_alone: float = 10.0
    """QUIC's handshake where nothing follows it."""
    tcp: float = 10.0
    """TCP's and TLS's handshake, over all addresses."""
    response: float = 15.0
    """From the request to the response headers, which come before the first frame exists."""


DEADLINES = Deadlines()


@asynccontextmanager
async def open_stream(
    url: str,
    *,
    transport: TransportChoice = "auto",
    params: Mapping[str, Value] | None = None,
    lead: float | Literal["max"] | None = None,
    listener: str | None = None,
    method: Literal["GET", "POST"] = "GET",
    trust: Trust | None = None,
    on_event: Callable[[Event], None] | None = None,
    deadlines: Deadlines = DEADLINES,
    addresses: Sequence[Address] | None = None,
) -> AsyncIterator[Stream]:
    """Ask for audio and yield a `Stream` whose format is known.

    `params` are the source's parameters (`text`, `lang`, ...) or a resume's (`from`,
    `epoch`); with POST they travel in the body, where no log sees them and no length is
    too much for a URL. `lead` is how many seconds ahead of real time the server may send,
    `"max"` unpaced. `addresses` are used instead of resolving the host.

    Raises `RequestError` for a refusal of the server (final on either transport), or a URL
    that is none; `ConnectError` where no transport got through; `OperatorError` for a CA
    file that cannot be read; `StreamCut` and `RemoteProtocolError` as the iteration does.
    """
    target = Target.parse(url)
    log = EventLog(on_event)
    request = _request(target, method, _params(target, params, lead, listener))
    started = asyncio.get_running_loop().time()
    opening = _Opening(target, request, trust or Trust(), deadlines, log, started)
    leg, response = await opening.run(transport, addresses)
    try:
        await _check(leg, response, target)
        stream = Stream(leg, response, opening.timings, started, log)
        await stream.prepare()
        yield stream
    finally:
        await leg.aclose()


def session_url(server: str, session: str) -> str:
    """The URL of a session's audio on the server at `server`."""
    return f"{server.rstrip('/')}/v1/sessions/{quote(session, safe='')}/audio"


@dataclass(slots=True)
class _Opening:
    """The attempts, in turn, until one has response headers."""

    target: Target
    request: Request
    trust: Trust
    deadlines: Deadlines
    log: EventLog
    started: float
    timings: Timings = field(default_factory=Timings)

    async def run(
        self, transport: TransportChoice, addresses: Sequence[Address] | None
    ) -> tuple[Leg, Response]:
        order: tuple[Transport, ...] = ("quic", "tcp") if transport == "auto" else (transport,)
        failures: list[Failure] = []
        try:
            found = addresses or await self._resolve()
        except LegError as failed:
            failures = [Failure(order[0], failed.kind, failed.reason)]
            raise connect_error(self.target, failures) from None
        for attempt in order:
            try:
                return await self._attempt(attempt, found, alone=len(order) == 1)
            except LegError as failed:
                failures.append(Failure(attempt, failed.kind, failed.reason))
                self.log.add(TransportFailed(failures[-1]))
        raise connect_error(self.target, failures)

    async def _resolve(self) -> Sequence[Address]:
        try:
            async with asyncio.timeout(self.deadlines.name):
                return await resolve(self.target)
        except TimeoutError:
            raise LegError(
                FailureKind.NAME,
                f"no address for {self.target.host} within {self.deadlines.name:g} s",
            ) from None

    async def _attempt(
        self, transport: Transport, addresses: Sequence[Address], *, alone: bool
    ) -> tuple[Leg, Response]:
        leg = await self._connect(transport, addresses, alone=alone)
        connected = self._elapsed()
        try:
            response = await self._respond(leg)
        except BaseException:
            await leg.aclose()
            raise
        self.timings.connected = connected
        self.timings.response = self._elapsed()
        self.log.add(TransportChosen(transport, leg.peer, connected))
        return leg, response

    async def _connect(
        self, transport: Transport, addresses: Sequence[Address], *, alone: bool
    ) -> Leg:
        host = self.target.host
        if transport == "tcp":
            return await connect_tcp(addresses, host, self.trust, deadline=self.deadlines.tcp)
        deadline = self.deadlines.quic_alone if alone else self.deadlines.quic
        return await connect_quic(addresses, host, self.trust, deadline=deadline)

    async def _respond(self, leg: Leg) -> Response:
        try:
            async with asyncio.timeout(self.deadlines.response):
                return await leg.request(self.request)
        except TimeoutError:
            raise LegError(
                FailureKind.TIMEOUT,
                f"{leg.peer} did not answer the request within {self.deadlines.response:g} s",
            ) from None

    def _elapsed(self) -> float:
        return asyncio.get_running_loop().time() - self.started


def _params(
    target: Target,
    params: Mapping[str, Value] | None,
    lead: float | Literal["max"] | None,
    listener: str | None,
) -> dict[str, Value]:
    merged = dict(params or {})
    if lead is not None:
        merged["lead"] = lead
    if listener is not None:
        merged["listener"] = listener
    elif "listener" not in target.names:
        # Ours for each stream, so that a newer leg of this listener can supersede this one.
        merged.setdefault("listener", secrets.token_urlsafe(9))
    for name, value in merged.items():
        try:
            f"{name}{value}".encode()
        except UnicodeEncodeError:
            raise RequestError(
                ErrorCode.BAD_TEXT,
                f"{name} holds a lone surrogate, which is no text",
                remedy="check the encoding of what was typed or read; it must be UTF-8",
            ) from None
    return merged


def _request(target: Target, method: str, params: Mapping[str, Value]) -> Request:
    headers = [
        ("accept", f"{MEDIA_TYPE}; v={VERSION}"),
        ("user-agent", f"tenuto/{__version__}"),
    ]
    if method == "GET":
        return Request(method, target.authority, target.request_path(params), tuple(headers))
    body = json.dumps(params, ensure_ascii=False).encode()
    headers.append(("content-type", "application/json"))
    return Request(method, target.authority, target.request_path(), tuple(headers), body)


async def _check(leg: Leg, response: Response, target: Target) -> None:
    """Raise for anything but a stream of records."""
    if response.status != 200:
        raise problem_error(response, await _read_some(leg))
    kind = response.headers.get("content-type", "no type at all")
    if kind.partition(";")[0].strip().lower() != MEDIA_TYPE:
        raise RequestError(
            ErrorCode.UNSUPPORTED_AUDIO,
            f"{target.origin} answered with {kind}, not with {MEDIA_TYPE}",
            remedy="is it a Tenuto server, and the path one that gives audio?",
        )


async def _read_some(leg: Leg) -> bytes:
    body = bytearray()
    try:
        while len(body) < MAX_PROBLEM_SIZE and (data := await leg.read()):
            body += data
    except LegError:
        pass  # the status alone says enough
    return bytes(body[:MAX_PROBLEM_SIZE])
