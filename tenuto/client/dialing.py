"""From a request to a leg that carries its answer: one attempt over one transport or both."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from tenuto.client.advice import connect_error
from tenuto.client.errors import Failure, FailureKind, LegError
from tenuto.client.events import EventLog, TransportChosen, TransportFailed
from tenuto.client.exchange import Request, Response, Transport, TransportChoice
from tenuto.client.problem import MAX_PROBLEM_SIZE, problem_error
from tenuto.client.quic import QuicLeg, connect_quic
from tenuto.client.target import Address, Target, resolve
from tenuto.client.tcp import TcpLeg, connect_tcp
from tenuto.client.trust import Trust
from tenuto.errors import ErrorCode, RequestError
from tenuto.wire import MEDIA_TYPE

__all__ = ["DEADLINES", "AnyLeg", "Deadlines", "Dialed", "Dialer"]

AnyLeg = QuicLeg | TcpLeg

_REASON_WITHIN = 5.0
"""Seconds for the body of a refusal; without it the status says enough."""


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


@dataclass(frozen=True, slots=True)
class Dialed:
    """A leg whose answer is a stream of records; times in seconds since the dialing began."""

    leg: AnyLeg
    response: Response
    connected: float
    responded: float


class Dialer:
    """Connects and asks, each time on sockets of its own and so from a new port.

    `addresses` are used instead of resolving the host.
    """

    def __init__(
        self,
        trust: Trust,
        deadlines: Deadlines,
        log: EventLog,
        addresses: Sequence[Address] | None = None,
    ) -> None:
        self._trust = trust
        self.deadlines = deadlines
        self._log = log
        self._addresses = addresses

    async def dial(self, target: Target, request: Request, transport: TransportChoice) -> Dialed:
        """QUIC first and TCP behind it, or the one asked for.

        Raises `RequestError` for a refusal by HTTP, which is final on either, `ConnectError`
        where no transport got through.
        """
        order: tuple[Transport, ...] = ("quic", "tcp") if transport == "auto" else (transport,)
        failures: list[Failure] = []
        began = asyncio.get_running_loop().time()
        try:
            found = await self._resolve(target)
        except LegError as failed:
            failures = [Failure(order[0], failed.kind, failed.reason)]
            raise connect_error(target, failures) from None
        for attempt in order:
            try:
                return await self._attempt(target, request, attempt, found, began, len(order) == 1)
            except LegError as failed:
                failures.append(Failure(attempt, failed.kind, failed.reason))
                self._log.add(TransportFailed(failures[-1]))
        raise connect_error(target, failures)

    async def connect_tcp(self, target: Target) -> TcpLeg:
        """A connection for exchanges beside the audio; raises `LegError`."""
        found = await self._resolve(target)
        return await connect_tcp(found, target.host, self._trust, deadline=self.deadlines.tcp)

    def elsewhere(self) -> None:
        """The addresses that were given are those of another server."""
        self._addresses = None

    async def _resolve(self, target: Target) -> Sequence[Address]:
        if self._addresses:
            return self._addresses
        try:
            async with asyncio.timeout(self.deadlines.name):
                return await resolve(target)
        except TimeoutError:
            raise LegError(
                FailureKind.NAME,
                f"no address for {target.host} within {self.deadlines.name:g} s",
            ) from None

    async def _attempt(
        self,
        target: Target,
        request: Request,
        transport: Transport,
        addresses: Sequence[Address],
        began: float,
        alone: bool,
    ) -> Dialed:
        loop = asyncio.get_running_loop()
        leg = await self._connect(target, transport, addresses, alone=alone)
        connected = loop.time() - began
        try:
            response = await self._respond(leg, request)
            responded = loop.time() - began
            self._log.add(TransportChosen(transport, leg.peer, connected))
            await _check(leg, response, target)
        except BaseException:
            await leg.aclose()
            raise
        return Dialed(leg, response, connected, responded)

    async def _connect(
        self, target: Target, transport: Transport, addresses: Sequence[Address], *, alone: bool
    ) -> AnyLeg:
        host, deadlines = target.host, self.deadlines
        if transport == "tcp":
            return await connect_tcp(addresses, host, self._trust, deadline=deadlines.tcp)
        deadline = deadlines.quic_alone if alone else deadlines.quic
        return await connect_quic(addresses, host, self._trust, deadline=deadline)

    async def _respond(self, leg: AnyLeg, request: Request) -> Response:
        try:
            async with asyncio.timeout(self.deadlines.response):
                return await leg.request(request)
        except TimeoutError:
            raise LegError(
                FailureKind.TIMEOUT,
                f"{leg.peer} did not answer the request within {self.deadlines.response:g} s",
            ) from None


async def _check(leg: AnyLeg, response: Response, target: Target) -> None:
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


async def _read_some(leg: AnyLeg) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(_REASON_WITHIN):
            while len(body) < MAX_PROBLEM_SIZE and (data := await leg.read()):
                body += data
    except (LegError, TimeoutError):
        pass  # the status alone says enough
    return bytes(body[:MAX_PROBLEM_SIZE])
