"""From a request to a leg that carries its answer: one attempt over one transport or both."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tenuto.client.advice import connect_error
from tenuto.client.errors import Failure, FailureKind, LegError
from tenuto.client.events import EventLog, TransportChosen, TransportFailed
from tenuto.client.exchange import Request, Response, Transport, TransportChoice
from tenuto.client.handover import first_of
from tenuto.client.paths import Paths
from tenuto.client.problem import MAX_PROBLEM_SIZE, problem_error
from tenuto.client.quic import QuicLeg, connect_quic
from tenuto.client.race import first_to_connect
from tenuto.client.target import Address, Target, resolve
from tenuto.client.tcp import TcpLeg, connect_tcp
from tenuto.client.trust import Trust
from tenuto.errors import ErrorCode, RequestError
from tenuto.wire import MEDIA_TYPE

__all__ = ["DEADLINES", "AnyLeg", "Deadlines", "Dialed", "Dialer"]

AnyLeg = QuicLeg | TcpLeg

T = TypeVar("T")

_REASON_WITHIN = 5.0
"""Seconds for the body of a refusal; without it the status says enough."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds until a step is given up. ICMP or RST end it at once."""

    name: float = 10.0
    """The look-up of the host's addresses."""
    quic: float = 10.0
    """QUIC's handshake, over all addresses."""
    quic_left: float = 2.0
    """The same, once TCP has failed: who is refused there soon asks again."""
    tcp: float = 10.0
    """TCP's and TLS's handshake, over all addresses."""
    response: float = 15.0
    """From the request to the response headers, which come before the first frame exists; and
    in a race from these to the first record."""


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
        paths: Paths,
        addresses: Sequence[Address] | None = None,
    ) -> None:
        self._trust = trust
        self.paths = paths
        self.deadlines = deadlines
        self.log = log
        self._addresses = addresses

    async def dial(self, target: Target, request: Request, transport: TransportChoice) -> Dialed:
        """A race of QUIC and TCP, or the one asked for.

        Raises `RequestError` for a refusal by HTTP, which is final on either, `ConnectError`
        where no transport got through.
        """
        try:
            found = await self._resolve(target)
        except LegError as failed:
            first: Transport = "tcp" if transport == "tcp" else "quic"
            raise connect_error(target, [Failure(first, failed.kind, failed.reason)]) from None
        await self.paths.arrive(found)
        order = self.paths.order() if transport == "auto" else (transport,)
        attempt = _Attempt(self, target, request, found)
        try:
            dialed = await first_to_connect(
                [partial(attempt.over, each, racing=len(order) > 1) for each in order],
                discard=_let_go,
            )
        except LegError:
            raise connect_error(target, attempt.failures) from None
        attempt.won(dialed, order)
        return dialed

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

    async def connect(
        self, target: Target, transport: Transport, addresses: Sequence[Address]
    ) -> AnyLeg:
        """A leg whose handshake is complete; raises `LegError`."""
        host, deadlines = target.host, self.deadlines
        if transport == "tcp":
            return await connect_tcp(addresses, host, self._trust, deadline=deadlines.tcp)
        return await connect_quic(addresses, host, self._trust, deadline=deadlines.quic)


class _Attempt:
    """One request, over one transport or raced over both."""

    def __init__(
        self, dialer: Dialer, target: Target, request: Request, addresses: Sequence[Address]
    ) -> None:
        self.failures: list[Failure] = []
        self._dialer = dialer
        self._target = target
        self._request = request
        self._addresses = addresses
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._quic: asyncio.Timeout | None = None
        """Until QUIC's handshake is done."""

    async def over(self, transport: Transport, *, racing: bool = False) -> Dialed:
        """The answer to the request by this one; raises `LegError` and `RequestError`.

        `racing`: not before it has brought a frame, or has said that none is due. A path may let
        a handshake through, and no more.
        """
        try:
            return await self._over(transport, racing)
        except LegError as failed:
            self._failed(Failure(transport, failed.kind, failed.reason))
            if transport == "tcp" and self._quic is not None:
                self._hurry(self._quic)
            raise

    async def _over(self, transport: Transport, racing: bool) -> Dialed:
        leg = await self._connect(transport)
        try:
            connected = self._loop.time() - self._began
            response = await self._respond(leg, leg.request(self._request), "the request")
            responded = self._loop.time() - self._began
            await _check(leg, response, self._target)
            if racing:
                within = self._dialer.deadlines.response
                leg.unread(await first_of(leg, paused=False, deadline=within, alive=1))
        except BaseException:
            leg.abort()
            raise
        return Dialed(leg, response, connected, responded)

    def won(self, dialed: Dialed, order: Sequence[Transport]) -> None:
        """Tell who carries the stream, and that QUIC does not where it should."""
        leg = dialed.leg
        if leg.transport == "tcp" and order[0] == "quic":
            if not self.failures:
                took = self._loop.time() - self._began
                reason = f"it had brought nothing after {took:.2f} s, and TCP had"
                self._failed(Failure("quic", FailureKind.TIMEOUT, reason))
            self._dialer.paths.failed("quic")
        self._dialer.log.add(TransportChosen(leg.transport, leg.peer, dialed.connected))

    def _failed(self, failure: Failure) -> None:
        self.failures.append(failure)
        self._dialer.log.add(TransportFailed(failure))

    async def _connect(self, transport: Transport) -> AnyLeg:
        if transport == "tcp":
            return await self._dialer.connect(self._target, transport, self._addresses)
        try:
            async with asyncio.timeout(None) as self._quic:
                if self.failures:
                    self._hurry(self._quic)
                return await self._dialer.connect(self._target, transport, self._addresses)
        except TimeoutError:
            tried = " and ".join(map(str, self._addresses))
            reason = f"no answer from {tried} within {self._loop.time() - self._began:.1f} s"
            raise LegError(FailureKind.TIMEOUT, reason) from None
        finally:
            self._quic = None

    def _hurry(self, limit: asyncio.Timeout) -> None:
        limit.reschedule(max(self._loop.time(), self._began + self._dialer.deadlines.quic_left))

    async def _respond(self, leg: AnyLeg, answer: Awaitable[T], what: str) -> T:
        within = self._dialer.deadlines.response
        try:
            async with asyncio.timeout(within):
                return await answer
        except TimeoutError:
            raise LegError(
                FailureKind.TIMEOUT, f"{leg.peer} did not answer {what} within {within:g} s"
            ) from None


def _let_go(dialed: Dialed) -> None:
    dialed.leg.abort()


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
