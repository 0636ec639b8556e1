"""One client's connection: its events, each under a guard, its requests and its timer."""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from aioquic.h3.connection import H3_ALPN
from aioquic.h3.connection import ErrorCode as H3Error
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.events import (
    ConnectionIdIssued,
    ConnectionIdRetired,
    ConnectionTerminated,
    HandshakeCompleted,
    ProtocolNegotiated,
    QuicEvent,
    StopSendingReceived,
    StreamReset,
)
from starlette.types import ASGIApp

from quicserver.limits import DoorLimits
from quicserver.request import Request, build_scope
from quicserver.sender import PlanSender
from tenuto.errors import ErrorCode, RequestError
from tenuto.quic import MAX_FIELD_SECTION_SIZE, Connection, Http3
from tenuto.web import PLAN
from tenuto.web.problems import problem

__all__ = ["Address", "Door", "Peer"]

Address = tuple[str, int] | tuple[str, int, int, int]

_MAX_ROUTES = 16


class Door(Protocol):
    """What a peer needs of the listener."""

    @property
    def leaving(self) -> bool:
        """Are requests no longer taken?"""
        ...

    def route(self, connection_id: bytes, peer: Peer) -> None: ...

    def unroute(self, connection_id: bytes) -> None: ...

    def flush_soon(self, peer: Peer) -> None: ...

    def send(self, socket: socket.socket, data: bytes, address: Address) -> None: ...

    def established(self, peer: Peer) -> None: ...

    def closed(
        self, peer: Peer, datagrams: list[bytes], local: socket.socket, until: float
    ) -> None:
        """We have closed; what was sent may have to be sent again until then."""
        ...

    def moved(self, peer: Peer) -> None:
        """Its client is heard from another address or port now."""
        ...

    def ended(self, peer: Peer) -> None: ...

    def faulted(self, fault: Exception) -> None: ...


class Peer:
    """Feeds one sans-I/O connection and runs the requests it carries.

    Whatever goes wrong in one event is answered by closing this connection; the rest of the
    burst and all other peers go on.
    """

    def __init__(
        self,
        door: Door,
        connection: Connection,
        app: ASGIApp,
        limits: DoorLimits,
        address: Address,
        local: socket.socket,
    ) -> None:
        self.connection = connection
        self.address = address
        self.gone = False
        self._door = door
        self._app = app
        self._limits = limits
        self._local = local
        self._routes: OrderedDict[Address, socket.socket] = OrderedDict({address: local})
        self._http: Http3 | None = None
        self._requests: dict[int, Request] = {}
        self._hungry: dict[PlanSender, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._loop = asyncio.get_running_loop()

    @property
    def http(self) -> Http3:
        """The HTTP/3 layer; there is one as soon as there are requests."""
        assert self._http is not None
        return self._http

    @property
    def requests(self) -> int:
        return len(self._requests)

    @property
    def held(self) -> int:
        """Bytes written for this client and not yet acknowledged."""
        return self.connection.held_in_all

    # From the listener

    def receive(self, data: bytes, address: Address, local: socket.socket, now: float) -> None:
        """One datagram. Call `flush` when the socket is empty."""
        self._learn_route(address, local)
        changes = self.connection.path_changes
        self._guarded(lambda: self.connection.receive_datagram(data, address, now))
        if self.connection.path_changes > changes:
            self._door.moved(self)
        self._pump()

    def _learn_route(self, address: Address, local: socket.socket) -> None:
        """Answers leave by the socket that was spoken to; addresses may be forged, so few stay."""
        self._routes[address] = local
        self._routes.move_to_end(address)
        if len(self._routes) > _MAX_ROUTES:
            self._routes.popitem(last=False)

    def flush(self, now: float) -> None:
        """Serve what waits for this moment, then transmit once."""
        if self.gone:
            return
        self._guarded(lambda: self._serve(now))
        self._transmit(now)

    def _serve(self, now: float) -> None:
        """Senders that were woken, those that waited for acknowledgements, waiting bodies."""
        woken, self._hungry = self._hungry, {}
        for sender in woken:
            sender.flush(now)
        for request in self.all_requests():
            if request.sender is not None:
                if request.sender in woken:
                    pass
                elif request.sender.blocked:
                    request.sender.flush(now)
                else:
                    request.sender.acknowledged(now)
            elif request.waiting:
                request.acknowledged()

    def keep_alive(self, now: float) -> None:
        """PING where one is due; called about once a second."""
        expecting = any(r.sender is not None and r.sender.expecting for r in self.all_requests())
        due = False

        def ask() -> None:
            nonlocal due
            due = self.connection.keep_alive(now, expecting=expecting)

        self._guarded(ask)
        if due:
            self._door.flush_soon(self)

    def goaway(self) -> None:
        """Tell the client to take further requests elsewhere; those that run go on."""
        if self._http is not None and not self.gone:
            self._guarded(self._http.goaway)
            self._door.flush_soon(self)

    def all_requests(self) -> list[Request]:
        return list(self._requests.values())

    def close(self, error_code: int, reason: str) -> None:
        """CONNECTION_CLOSE, and forget the peer."""
        self.connection.close(error_code=error_code, reason_phrase=reason)
        self._transmit(self._loop.time())
        self._end()

    # For requests and senders

    def request_flush(self, sender: PlanSender) -> None:
        self._hungry[sender] = None
        self._door.flush_soon(self)

    def transmit_soon(self) -> None:
        self._door.flush_soon(self)

    def plan_started(self, sender: PlanSender) -> None:
        self._hungry[sender] = None

    def request_ended(self, request: Request) -> None:
        self._requests.pop(request.stream_id, None)
        self._door.flush_soon(self)

    def app_failed(self, fault: Exception) -> None:
        self._door.faulted(fault)

    # Events

    def _pump(self) -> None:
        while not self.gone:
            event: QuicEvent | None = None
            try:
                event = self.connection.next_event()
                if event is None:
                    return
                self._handle(event)
            except Exception as fault:  # noqa: BLE001  # a guard
                self._fail(fault)

    def _guarded(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as fault:  # noqa: BLE001  # a guard
            self._fail(fault)

    def _fail(self, fault: Exception) -> None:
        self._door.faulted(fault)
        self.connection.close(error_code=H3Error.H3_INTERNAL_ERROR, reason_phrase="server fault")

    def _handle(self, event: QuicEvent) -> None:
        match event:
            case ConnectionIdIssued():
                self._door.route(event.connection_id, self)
            case ConnectionIdRetired():
                self._door.unroute(event.connection_id)
            case ProtocolNegotiated() if event.alpn_protocol in H3_ALPN:
                self._http = Http3(self.connection)
            case HandshakeCompleted():
                self._shaken_hands()
            case ConnectionTerminated():
                self._end()
                return
            case StreamReset() | StopSendingReceived():
                request = self._requests.get(event.stream_id)
                if request is not None:
                    request.disconnected()
            case _:
                pass
        if self._http is not None:
            for http_event in self._http.handle_event(event):
                self._handle_http(http_event)

    def _shaken_hands(self) -> None:
        self._door.established(self)
        if self._door.leaving:
            self.goaway()

    def _handle_http(self, event: H3Event) -> None:
        if isinstance(event, HeadersReceived):
            if event.stream_id not in self._requests:
                self._start(event)
            elif event.stream_ended:  # Trailers end the body.
                self._requests[event.stream_id].body_received(b"", ended=True)
        elif isinstance(event, DataReceived):
            request = self._requests.get(event.stream_id)
            if request is not None:
                request.body_received(event.data, ended=event.stream_ended)

    def _start(self, event: HeadersReceived) -> None:
        if self.http.refuses(event.stream_id):
            return
        size = sum(len(name) + len(value) + 32 for name, value in event.headers)
        if size > MAX_FIELD_SECTION_SIZE:
            # RFC 9114 section 4.2.2: the decoded section counts, with 32 bytes per field.
            self._refuse(event.stream_id, size)
            self.connection.refuse_rest(event.stream_id, H3Error.H3_NO_ERROR)
            return
        local = self._local.getsockname()
        scope = build_scope(
            event.headers, (self.address[0], self.address[1]), (local[0], local[1]), [PLAN]
        )
        request = Request(self, event.stream_id, scope, self._app, self._limits)
        self._requests[event.stream_id] = request
        if event.stream_ended:
            request.body_received(b"", ended=True)

    def _refuse(self, stream_id: int, size: int) -> None:
        answer = problem(
            RequestError(
                ErrorCode.HEADERS_TOO_LARGE,
                f"a header section of {size} bytes",
                remedy=f"{MAX_FIELD_SECTION_SIZE} bytes are taken, 32 counted for each field",
            )
        )
        status = str(answer.status_code).encode()
        self.http.respond(stream_id, [(b":status", status), *answer.raw_headers])
        self.http.write(stream_id, bytes(answer.body), end_stream=True)

    # Sending and time

    def _transmit(self, now: float) -> None:
        try:
            datagrams = self.connection.datagrams_to_send(now)
        except Exception as fault:  # noqa: BLE001  # a guard
            # A connection that cannot even build its packets has nothing left to say.
            self._door.faulted(fault)
            self._end()
            return
        for data, address in datagrams:
            self._door.send(self._routes.get(address, self._local), data, address)
        if self.connection.closing:
            # aioquic would keep all of it for three PTOs and answer nothing more.
            self._leave([data for data, _ in datagrams], now)
        self._arm()

    def _leave(self, farewell: list[bytes], now: float) -> None:
        until = self.connection.get_timer() or now
        local = self._routes.get(self.address, self._local)
        if farewell:
            self._door.closed(self, farewell, local, until)
        self._end()

    def _arm(self) -> None:
        """One loop timer per peer, moved only when something is due earlier."""
        if self.gone:
            return
        due = self.connection.get_timer()
        if due is None:
            return
        if self._timer is not None:
            if self._timer_at <= due:
                return
            self._timer.cancel()
        self._timer_at = due
        self._timer = self._loop.call_at(due, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = self._loop.time()
        due = self.connection.get_timer()
        if due is not None and due <= now:
            self._guarded(lambda: self.connection.handle_timer(now))
            self._pump()
            self.flush(now)
        else:
            self._arm()

    def _end(self) -> None:
        if self.gone:
            return
        self.gone = True
        if self._timer is not None:
            self._timer.cancel()
        for request in self.all_requests():
            request.disconnected()
        self._door.ended(self)
