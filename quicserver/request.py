"""One HTTP/3 request as an ASGI scope, its `receive` and its `send`."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Scope

from quicserver.limits import DoorLimits
from quicserver.sender import PlanSender, Transmitter
from tenuto.errors import ErrorCode, TenutoError
from tenuto.web import PLAN

__all__ = ["Request", "RequestOwner", "build_scope"]

_H3_NO_ERROR = 0x100
_H3_REQUEST_CANCELLED = 0x10C
_HIGH_WATER = 64 * 1024

Headers = list[tuple[bytes, bytes]]


class RequestOwner(Transmitter, Protocol):
    """What a request needs of its connection's owner."""

    def plan_started(self, sender: PlanSender) -> None: ...

    def request_ended(self, request: Request) -> None: ...

    def app_failed(self, fault: Exception) -> None: ...

    def transmit_soon(self) -> None: ...


class Request:
    """Runs the app for one request and cancels it the moment the client is gone."""

    def __init__(
        self, owner: RequestOwner, stream_id: int, scope: Scope, app: ASGIApp, limits: DoorLimits
    ) -> None:
        self.stream_id = stream_id
        self.sender: PlanSender | None = None
        self._owner = owner
        self._scope = scope
        self._limits = limits
        self._body: deque[bytes] = deque()
        self._unread = 0
        self._body_ended = False
        self._gone = False
        self._news = asyncio.Event()
        self._drained = asyncio.Event()
        self._begun = False
        self._ended = False
        self._task = asyncio.create_task(self._run(app))
        # Not a `finally` in `_run`: a task cancelled before its first step runs none.
        self._task.add_done_callback(lambda task: self._close())

    @property
    def waiting(self) -> bool:
        """Is a body write waiting for acknowledgements?"""
        return self._begun and not self._ended and not self._drained.is_set()

    # From the connection

    def body_received(self, data: bytes, *, ended: bool) -> None:
        if data and not self._ended:
            self._body.append(data)
            self._count(len(data))
        self._body_ended = self._body_ended or ended
        self._news.set()

    def acknowledged(self) -> None:
        """The stream may hold less now."""
        if self._owner.connection.held(self.stream_id) <= _HIGH_WATER // 2:
            self._drained.set()

    def disconnected(self) -> None:
        """The client reset, stopped or closed: nothing of this request matters any more."""
        self._gone = True
        self._news.set()
        if self.sender is not None:
            self.sender.abandon()
        self._task.cancel()

    # The ASGI side

    async def _run(self, app: ASGIApp) -> None:
        try:
            await app(self._scope, self._receive, self._send)
            if not self._ended and not self._gone:
                self._abort(ErrorCode.INTERNAL)
        except TenutoError as error:
            self._abort(error.code)
        except Exception as fault:  # noqa: BLE001  # a guard
            self._owner.app_failed(fault)
            self._abort(ErrorCode.INTERNAL)

    def _close(self) -> None:
        if not self._ended:
            # A client that reset its half alone still waits for ours (RFC 9114 4.1.1).
            self._ended = True
            self._owner.http.abort(self.stream_id, _H3_REQUEST_CANCELLED)
        self._release()
        self._owner.request_ended(self)

    async def _receive(self) -> Message:
        while not self._body:
            if self._gone:
                return {"type": "http.disconnect"}
            if self._body_ended:
                self._body_ended = False
                return {"type": "http.request", "body": b"", "more_body": False}
            self._news.clear()
            await self._news.wait()
        data = self._body.popleft()
        self._count(-len(data))
        self._owner.transmit_soon()
        return {"type": "http.request", "body": data, "more_body": True}

    async def _send(self, message: Message) -> None:
        if self._gone or self._ended:
            return
        kind = message["type"]
        if kind == "http.response.start":
            self._begin(message)
        elif kind == "http.response.body":
            await self._write(message.get("body", b""), more=message.get("more_body", False))
        elif kind == PLAN:
            await self._carry_out(message)

    def _begin(self, message: Message) -> None:
        fields: Headers = [(b":status", str(message["status"]).encode())]
        # RFC 9114 section 4.2: names in lower case, nothing about connections.
        fields += [
            (name.lower(), value)
            for name, value in message.get("headers", [])
            if name.lower() not in (b"connection", b"transfer-encoding", b"keep-alive")
        ]
        self._begun = True
        self._owner.http.respond(self.stream_id, fields)
        self._owner.transmit_soon()

    async def _write(self, data: bytes, *, more: bool) -> None:
        if self._scope["method"] == "HEAD":
            data = b""
        if not self._owner.http.write(self.stream_id, data, end_stream=not more):
            self._ended = True
            return
        self._ended = not more
        self._owner.transmit_soon()
        if more and self._owner.connection.held(self.stream_id) > _HIGH_WATER:
            self._drained.clear()
            try:
                async with asyncio.timeout(self._limits.stalled):
                    await self._drained.wait()
            except TimeoutError:
                self._abort(ErrorCode.TOO_SLOW)

    async def _carry_out(self, message: Message) -> None:
        plan = message["plan"]
        sender = PlanSender(self._owner, self.stream_id, plan, self._limits, plan.host.now())
        self.sender = sender
        self._owner.plan_started(sender)
        sender.start()
        try:
            await sender.done
        finally:
            self._ended = True

    def _abort(self, code: ErrorCode) -> None:
        if not self._ended:
            self._ended = True
            self._owner.http.abort(self.stream_id, code.h3_error)
            self._owner.transmit_soon()

    def _release(self) -> None:
        """Unread body is let go of; a client still sending is told to stop (RFC 9114 4.1)."""
        self._body.clear()
        self._count(-self._unread)
        self._owner.connection.refuse_rest(self.stream_id, _H3_NO_ERROR)

    def _count(self, change: int) -> None:
        self._unread += change
        self._owner.connection.unconsumed(self.stream_id, self._unread)


def build_scope(
    headers: Headers, client: tuple[str, int], server: tuple[str, int], extensions: list[str]
) -> Scope:
    """The ASGI HTTP scope of a request's field section (RFC 9114 section 4.3.1)."""
    pseudo = {name: value for name, value in headers if name.startswith(b":")}
    fields = [(name, value) for name, value in headers if not name.startswith(b":")]
    authority = pseudo.get(b":authority")
    if authority is not None and not any(name == b"host" for name, _ in fields):
        fields.insert(0, (b"host", authority))
    raw_path, _, query = pseudo.get(b":path", b"/").partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "3",
        "method": pseudo.get(b":method", b"GET").decode("latin-1"),
        "scheme": pseudo.get(b":scheme", b"https").decode("latin-1"),
        "path": _unquote(raw_path),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": fields,
        "client": client,
        "server": server,
        "extensions": {name: {} for name in extensions},
    }


def _unquote(path: bytes) -> str:
    return unquote_to_bytes(path).decode("utf-8", "replace")
