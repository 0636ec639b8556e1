"""Commands to a session and word of what was heard, beside the audio and never in its way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from tenuto.client.answers import retry_after
from tenuto.client.asking import Asking, checked
from tenuto.client.dialing import AnyLeg, Dialer
from tenuto.client.errors import ConnectError, Failure, FailureKind, LegError
from tenuto.client.exchange import Request, Response
from tenuto.client.problem import MAX_PROBLEM_SIZE, problem_error
from tenuto.client.quic import QuicLeg
from tenuto.client.target import Value
from tenuto.client.tcp import TcpLeg
from tenuto.errors import RemoteProtocolError, RequestError

__all__ = ["REPORT_INTERVAL", "WITHIN", "Controls"]

REPORT_INTERVAL = 1.0
"""Seconds between two reports of what was heard, at least."""

WITHIN = 5.0
"""Seconds for a command and its answer, the connection included."""


class Controls:
    """One command at a time: on the audio's QUIC connection, or on a TCP one of their own."""

    def __init__(self, dialer: Dialer, asking: Asking) -> None:
        self._dialer = dialer
        self._asking = asking
        self._turn = asyncio.Lock()
        self._side: TcpLeg | None = None
        self._closed = False
        self.reports = 0
        """Reports that arrived."""
        self.failed_reports = 0

    async def command(
        self,
        leg: AnyLeg,
        session: str,
        name: str,
        fields: Mapping[str, Value],
        key: str | None = None,
        within: float = WITHIN,
    ) -> dict[str, Any]:
        """The server's answer. Raises `RequestError`, `ConnectError`, `RemoteProtocolError`.

        `key` is for what must not be done twice: it may arrive and its answer be lost.
        """
        request = self._asking.control(session, checked({"command": name, **fields}), key)
        try:
            async with asyncio.timeout(within), self._turn:
                response, body = await self._exchange(leg, request)
        except (LegError, TimeoutError) as error:
            raise self._unreachable(leg, name, error) from None
        if response.status != 200:
            raise problem_error(response, body)
        return _object(body)

    async def report(self, leg: AnyLeg, session: str, heard: int) -> float:
        """Tell how far the listener is; how many seconds the server wants to be left alone."""
        fields: dict[str, Value] = {"listener": self._asking.listener, "heard": heard}
        try:
            await self.command(leg, session, "progress", fields)
        except (ConnectError, RemoteProtocolError, RequestError) as error:
            self.failed_reports += 1
            return retry_after(error.detail) if isinstance(error, RequestError) else 0.0
        self.reports += 1
        return 0.0

    def let_go(self) -> None:
        """Nothing is to be said for a while: the connection of its own is closed."""
        if not self._turn.locked():
            self.leave()

    def leave(self) -> None:
        """Its connection belongs to another network: what is being said is said over a new one.

        Each command may come twice: a flush has its key.
        """
        if self._side is not None:
            self._side.abort()
            self._side = None

    async def aclose(self) -> None:
        self._closed = True
        side, self._side = self._side, None
        if side is not None:
            await side.aclose()

    async def _exchange(self, leg: AnyLeg, request: Request) -> tuple[Response, bytes]:
        self._check_open()
        if isinstance(leg, QuicLeg):
            return await leg.exchange(request, MAX_PROBLEM_SIZE)
        if self._side is not None:
            try:
                return await self._ask(self._side, request)
            except LegError:
                pass  # a server closes what is idle; it says so only to who asks again
        side = await self._dialer.connect_tcp(self._asking.target)
        try:
            self._check_open()
        except LegError:
            side.abort()
            raise
        self._side = side
        return await self._ask(side, request)

    def _check_open(self) -> None:
        if self._closed:
            raise LegError(FailureKind.CLOSED, "the stream is closed")

    async def _ask(self, side: TcpLeg, request: Request) -> tuple[Response, bytes]:
        try:
            return await side.exchange(request, MAX_PROBLEM_SIZE)
        except BaseException:
            # Half an answer may be on its way: whoever asks next would take it for its own.
            side.abort()
            self._side = None
            raise

    def _unreachable(self, leg: AnyLeg, name: str, error: LegError | TimeoutError) -> ConnectError:
        failures: tuple[Failure, ...] = ()
        if isinstance(error, LegError):
            reason = error.reason
            failures = (Failure(leg.transport, error.kind, reason),)
        else:
            reason = f"no answer within {WITHIN:g} s"
        return ConnectError(
            f"the server could not be told to {name}: {reason}",
            remedy="open another" if self._closed else "the audio goes on; say it again",
            failures=failures,
        )


def _object(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise RemoteProtocolError("the answer to a command is no JSON object")
    return answer
