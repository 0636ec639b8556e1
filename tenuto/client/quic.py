"""The QUIC leg: one HTTP/3 exchange on a connection of its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from functools import partial

from aioquic.h3.connection import ErrorCode as H3Error
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import HandshakeCompleted, QuicEvent, StreamReset

from tenuto.client.driver import ClientConnection, QuicDriver
from tenuto.client.errors import FailureKind, LegError
from tenuto.client.exchange import Request, Response, Transport
from tenuto.client.race import first_to_connect
from tenuto.client.target import Address
from tenuto.client.trust import Trust
from tenuto.errors import ErrorCode
from tenuto.quic import Http3, ReceiveWindow

__all__ = ["IDLE_TIMEOUT", "WINDOW", "QuicLeg", "connect_quic"]

IDLE_TIMEOUT = 12.0
"""Seconds without a packet after which the connection is given up."""

WINDOW = ReceiveWindow(stream=256 * 1024, connection=512 * 1024)
"""What the server may send beyond what was read: 8 s of 16 kHz mono, and still twice real
time for 48 kHz stereo at an RTT of 600 ms."""

# Bytes read after which new credit is offered; a quarter leaves the peer never waiting.
_CREDIT_STEP = WINDOW.stream // 4

# Bytes given out at once.
_RUN = 32 * 1024


class QuicLeg:
    """One exchange; what is not read keeps the server's credit from growing."""

    transport: Transport = "quic"

    def __init__(
        self, address: Address, host: str, trust: Trust, *, local: socket.socket | None = None
    ) -> None:
        """`local` is a UDP socket whose port is used, and which stays open."""
        configuration = QuicConfiguration(
            alpn_protocols=["h3"],
            idle_timeout=IDLE_TIMEOUT,
            is_client=True,
            server_name=host,
        )
        WINDOW.apply(trust.apply(configuration))
        self.peer = str(address)
        self._connection = ClientConnection(configuration=configuration, window=WINDOW)
        self._http = Http3(self._connection)
        self._stream_id: int | None = None
        self._body = bytearray()
        self._since_credit = 0
        self._ended = False
        self._failure: LegError | None = None
        self._handshaken = False
        self._response: Response | None = None
        self._changed = asyncio.Event()
        self._sides: dict[int, _Side] = {}
        self._driver = QuicDriver(
            self._connection,
            address,
            on_event=self._on_event,
            after_burst=self._account,
            on_lost=self._on_lost,
            local=local,
        )

    @property
    def buffered(self) -> int:
        return len(self._body)

    async def connect(self) -> None:
        """Wait for the handshake; `LegError` if there will be none."""
        self._driver.start()
        while not self._handshaken:
            await self._wait()

    async def request(self, request: Request) -> Response:
        self._stream_id = self._send(request)
        self._driver.rest(False)
        while self._response is None:
            await self._wait()
        return self._response

    def _send(self, request: Request) -> int:
        stream_id = self._connection.get_next_available_stream_id()
        headers = [
            (b":method", request.method.encode("ascii")),
            (b":scheme", b"https"),
            (b":authority", request.authority.encode("ascii")),
            (b":path", request.path.encode("ascii")),
            *((n.encode("ascii"), v.encode("latin-1")) for n, v in request.headers),
        ]
        self._http.respond(stream_id, headers, end_stream=not request.body)
        if request.body:
            self._http.write(stream_id, request.body, end_stream=True)
        return stream_id

    def unread(self, data: bytes) -> None:
        self._body[:0] = data

    async def read(self) -> bytes:
        while not self._body:
            if self._ended:
                return b""
            await self._wait()
        data = bytes(self._body[:_RUN])
        del self._body[:_RUN]
        self._since_credit += len(data)
        if self._since_credit >= _CREDIT_STEP:
            self._since_credit = 0
            self._account()
            self._driver.transmit()
        return data

    async def exchange(self, request: Request, most: int) -> tuple[Response, bytes]:
        """A whole answer of at most `most` bytes, on another stream of the connection.

        Raises `LegError`, and does no harm to the one exchange.
        """
        if self._failure is not None:
            raise self._failure
        side = _Side(self._send(request), most)
        self._sides[side.stream_id] = side
        self._driver.transmit()
        try:
            return await side.done
        finally:
            del self._sides[side.stream_id]

    def ping(self) -> None:
        self._driver.ping()

    def rest(self, quiet: bool) -> None:
        self._driver.rest(quiet)

    def doze(self) -> None:
        self._driver.doze()

    def rebind(self) -> bool:
        return self._driver.rebind()

    def abort(self) -> None:
        self._driver.close(H3Error.H3_NO_ERROR)
        self._fail(FailureKind.CLOSED, "it was left for another")

    async def aclose(self) -> None:
        self.abort()

    async def _wait(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._changed.clear()
        await self._changed.wait()

    def _on_event(self, event: QuicEvent) -> None:
        if isinstance(event, HandshakeCompleted):
            self._handshaken = True
        elif isinstance(event, StreamReset) and event.stream_id == self._stream_id:
            reason = f"the server reset it ({_name(event.error_code)})"
            self._fail(FailureKind.CLOSED, reason, _code(event.error_code))
        elif isinstance(event, StreamReset) and event.stream_id in self._sides:
            reason = f"the server reset it ({_name(event.error_code)})"
            self._sides[event.stream_id].fail(LegError(FailureKind.CLOSED, reason))
        for http_event in self._http.handle_event(event):
            self._on_http(http_event)
        self._changed.set()

    def _on_http(self, event: H3Event) -> None:
        if not isinstance(event, HeadersReceived | DataReceived):
            return
        if event.stream_id in self._sides:
            self._sides[event.stream_id].take(event)
        if event.stream_id != self._stream_id:
            return
        if isinstance(event, DataReceived):
            self._body += event.data
        elif self._response is None:
            self._response = _response(event.headers)
        self._ended = self._ended or event.stream_ended

    def _account(self) -> None:
        if self._stream_id is not None:
            self._connection.unconsumed(self._stream_id, len(self._body))

    def _on_lost(self, failure: LegError) -> None:
        self._fail(failure.kind, failure.reason)

    def _fail(self, kind: FailureKind, reason: str, code: ErrorCode | None = None) -> None:
        if self._failure is None and not self._ended:
            self._failure = LegError(kind, reason, code)
        for side in self._sides.values():
            side.fail(LegError(kind, reason, code))
        self._changed.set()


class _Side:
    """An exchange beside the audio, held whole."""

    def __init__(self, stream_id: int, most: int) -> None:
        self.stream_id = stream_id
        self.done: asyncio.Future[tuple[Response, bytes]] = (
            asyncio.get_running_loop().create_future()
        )
        self._most = most
        self._response: Response | None = None
        self._body = bytearray()

    def take(self, event: HeadersReceived | DataReceived) -> None:
        if self.done.done():
            return
        if isinstance(event, DataReceived):
            self._body += event.data
        elif self._response is None:
            self._response = _response(event.headers)
        if len(self._body) > self._most:
            reason = f"an answer of more than {self._most} bytes"
            self.fail(LegError(FailureKind.PROTOCOL, reason))
        elif event.stream_ended and self._response is not None:
            self.done.set_result((self._response, bytes(self._body)))

    def fail(self, failure: LegError) -> None:
        if not self.done.done():
            self.done.set_exception(failure)


async def connect_quic(
    addresses: Sequence[Address], host: str, trust: Trust, *, deadline: float
) -> QuicLeg:
    """A leg whose handshake is complete, on the first address that answers.

    Raises `LegError`, after `deadline` seconds at the latest.
    """
    try:
        async with asyncio.timeout(deadline):
            return await first_to_connect(
                [partial(_connect, address, host, trust) for address in addresses],
                discard=QuicLeg.abort,
            )
    except TimeoutError:
        tried = " and ".join(map(str, addresses))
        raise LegError(
            FailureKind.TIMEOUT, f"no answer from {tried} within {deadline:g} s"
        ) from None


async def _connect(address: Address, host: str, trust: Trust) -> QuicLeg:
    try:
        leg = QuicLeg(address, host, trust)
    except OSError as error:
        reason = f"{address} cannot be reached: {error.strerror or error}"
        raise LegError(FailureKind.UNREACHABLE, reason) from None
    try:
        await leg.connect()
    except BaseException:
        await leg.aclose()
        raise
    return leg


def _response(headers: list[tuple[bytes, bytes]]) -> Response | None:
    """None for an interim response (RFC 9114 section 4.1)."""
    fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
    status = int(fields.pop(":status"))
    return None if status < 200 else Response(status, fields)


def _code(error_code: int) -> ErrorCode | None:
    return next((code for code in ErrorCode if code.h3_error == error_code), None)


def _name(error_code: int) -> str:
    ours = _code(error_code)
    if ours is not None:
        return str(ours.value)
    named = {int(error): str(error.name) for error in H3Error}
    return named.get(error_code, f"error 0x{error_code:x}")
