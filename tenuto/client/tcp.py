"""The TCP leg: one HTTP/1.1 exchange over TLS 1.3."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import NoReturn

import h11

from tenuto.client.errors import FailureKind, LegError
from tenuto.client.exchange import Request, Response, Transport
from tenuto.client.race import first_to_connect
from tenuto.client.target import Address
from tenuto.client.trust import Trust
from tenuto.tls import explain_verification

__all__ = ["TcpLeg", "connect_socket", "connect_tcp", "secure"]

# asyncio reads ahead up to twice this before it stops reading the socket.
_READ_LIMIT = 32 * 1024

# Bytes the kernel may hold for a reader that pauses; it would grow to several MiB by itself.
_RECEIVE_BUFFER = 256 * 1024

# Seconds: a peer that vanished is noticed after 5 + 3 * 2, about QUIC's idle time-out.
_KEEPALIVE = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3))

_CLOSE_WITHIN = 0.5


class TcpLeg:
    """One exchange; what is not read fills the socket and stops the server."""

    transport: Transport = "tcp"

    def __init__(
        self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.peer = str(address)
        self._keep = False
        self._ahead = b""
        """Of the body: it was given back, and is given out again first."""
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(our_role=h11.CLIENT)
        self._failure: LegError | None = None
        self._ended = False
        self._hung_up = False

    @property
    def buffered(self) -> int:
        return len(self._ahead) + len(self._http.trailing_data[0])

    @property
    def certificate(self) -> bytes | None:
        """The server's, in DER; trusted or not."""
        connection: ssl.SSLObject = self._writer.get_extra_info("ssl_object")
        return connection.getpeercert(binary_form=True)

    async def request(self, request: Request) -> Response:
        headers = [("host", request.authority), *request.headers]
        if not self._keep:
            headers.append(("connection", "close"))
        if request.body:
            headers.append(("content-length", str(len(request.body))))
        head = h11.Request(method=request.method, target=request.path, headers=headers)
        messages: list[h11.Event] = [head, h11.EndOfMessage()]
        if request.body:
            messages.insert(1, h11.Data(data=request.body))
        # Not drained: a server may answer, and refuse, before it has read the whole.
        for message in messages:
            self._writer.write(self._http.send(message) or b"")
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Response):
                return _response(event)
            if not isinstance(event, h11.InformationalResponse):
                self._fail(FailureKind.PROTOCOL, "its answer is no HTTP response")

    def unread(self, data: bytes) -> None:
        self._ahead = data + self._ahead

    async def read(self) -> bytes:
        if self._ahead:
            ahead, self._ahead = self._ahead, b""
            return ahead
        while not self._ended:
            event = await self._next_event()
            if isinstance(event, h11.Data):
                if event.data:
                    return bytes(event.data)
            elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                self._ended = True
        return b""

    async def exchange(self, request: Request, most: int) -> tuple[Response, bytes]:
        """A whole answer of at most `most` bytes, on a connection that others may follow on.

        Raises `LegError`; then the connection is of no more use.
        """
        self._keep = True
        self._ended = False
        response = await self.request(request)
        body = bytearray()
        while data := await self.read():
            body += data
            if len(body) > most:
                self._fail(FailureKind.PROTOCOL, f"an answer of more than {most} bytes")
        try:
            self._http.start_next_cycle()
        except h11.LocalProtocolError:
            self._failure = LegError(FailureKind.CLOSED, "the server keeps no connection open")
        return response, bytes(body)

    def ping(self) -> None:
        """Nothing: TCP tells nobody where it is, and its kernel asks for what was lost."""

    def rest(self, quiet: bool) -> None:
        """Whether the kernel's keep-alives wake the radio."""
        made: socket.socket | None = self._writer.get_extra_info("socket")
        if made is None:
            return  # closed meanwhile
        with suppress(OSError):
            made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, not quiet)

    def doze(self) -> None:
        """Nothing: the kernel's keep-alives do it."""

    def rebind(self) -> bool:
        return False

    def abort(self) -> None:
        self._writer.transport.abort()

    async def aclose(self) -> None:
        self._writer.close()
        try:
            async with asyncio.timeout(_CLOSE_WITHIN):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            pass
        finally:
            self._writer.transport.abort()  # where it is not closed by now

    async def _next_event(self) -> h11.Event:
        if self._failure is not None:
            raise self._failure
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                if self._hung_up:
                    self._fail(FailureKind.CLOSED, "the server closed the connection in mid-answer")
                self._fail(FailureKind.PROTOCOL, f"not HTTP/1.1: {error}")
            if event is h11.PAUSED:
                self._fail(FailureKind.PROTOCOL, "it sent more than one answer")
            if isinstance(event, h11.Event):
                return event
            self._http.receive_data(await self._receive())

    async def _receive(self) -> bytes:
        try:
            data = await self._reader.read(_READ_LIMIT)
        except OSError as error:  # ssl.SSLError is one
            self._fail(FailureKind.CLOSED, f"the connection broke: {error.strerror or error}")
        self._hung_up = not data
        return data

    def _fail(self, kind: FailureKind, reason: str) -> NoReturn:
        self._failure = LegError(kind, reason)
        raise self._failure


async def connect_tcp(
    addresses: Sequence[Address], host: str, trust: Trust, *, deadline: float
) -> TcpLeg:
    """A leg whose TLS handshake is complete, on the first address that answers.

    Raises `LegError`, after `deadline` seconds at the latest.
    """
    context = trust.tls_context()
    try:
        async with asyncio.timeout(deadline):
            return await first_to_connect(
                [partial(_connect, address, host, context) for address in addresses],
                discard=TcpLeg.abort,
            )
    except TimeoutError:
        tried = " and ".join(map(str, addresses))
        raise LegError(
            FailureKind.TIMEOUT, f"no answer from {tried} within {deadline:g} s"
        ) from None


async def _connect(address: Address, host: str, context: ssl.SSLContext) -> TcpLeg:
    return await secure(await connect_socket(address), address, host, context)


async def connect_socket(address: Address) -> socket.socket:
    """TCP alone, without TLS; raises `LegError`."""
    try:
        return await _connect_socket(address)
    except OSError as error:
        raise _explain(error, address) from None


async def secure(
    connected: socket.socket, address: Address, host: str, context: ssl.SSLContext
) -> TcpLeg:
    """TLS on a connection, which is closed where that fails; raises `LegError`."""
    try:
        reader, writer = await asyncio.open_connection(
            sock=connected, ssl=context, server_hostname=host, limit=_READ_LIMIT
        )
    except OSError as error:
        raise _explain(error, address) from None
    return TcpLeg(address, reader, writer)


async def _connect_socket(address: Address) -> socket.socket:
    made = socket.socket(address.family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        for name, value in _KEEPALIVE:
            if hasattr(socket, name):  # not everywhere
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        await asyncio.get_running_loop().sock_connect(made, address.sockaddr)
    except BaseException:
        made.close()
        raise
    return made


def _explain(error: OSError, address: Address) -> LegError:
    if isinstance(error, ConnectionRefusedError):
        return LegError(FailureKind.REFUSED, f"{address} refused")
    if isinstance(error, ssl.SSLCertVerificationError):
        refusal = explain_verification(error, datetime.now(UTC))
        return LegError(
            FailureKind.UNTRUSTED,
            f"the certificate of {address} is not trusted ({refusal.reason})",
            remedy=refusal.remedy,
        )
    if isinstance(error, ssl.SSLError):
        reason = f"{address} does not speak TLS 1.3 ({error.reason or error})"
        return LegError(FailureKind.PROTOCOL, reason)
    if isinstance(error, ConnectionResetError | ConnectionAbortedError):
        return LegError(FailureKind.CLOSED, f"{address} closed in the middle of the handshake")
    reason = f"{address} cannot be reached: {error.strerror or error}"
    return LegError(FailureKind.UNREACHABLE, reason)


def _response(event: h11.Response) -> Response:
    fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
    return Response(event.status_code, fields)
