"""TCP sockets and connections around hypercorn's `TCPServer`."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from h11 import ProtocolError
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.events import Event as HypercornEvent
from hypercorn.events import Updated
from hypercorn.utils import wrap_app
from starlette.types import ASGIApp

from fallback.chunks import ABORT, METER, TUNE
from fallback.hardening import harden
from fallback.meter import CountingWriter
from tenuto.host import Admission
from tenuto.telemetry.events import Event
from tenuto.telemetry.faults import describe_fault

__all__ = ["TcpLimits", "TcpListener", "TcpTally", "bind_tcp"]

_TCP_NOTSENT_LOWAT = 25
_LEAST_SEND_BUFFER = 32 * 1024
_ACCEPT_PAUSE = 0.1

_ABORTING = 0.3
"""Seconds for the tasks of aborted connections to end."""


@dataclass(frozen=True, slots=True)
class TcpLimits:
    """Times in seconds, sizes in bytes; docs/server-behaviour.md says what happens at each."""

    max_connections: int = 2000
    max_connections_per_address: int = 500
    """A carrier's NAT hides many phones behind one address."""
    handshake: float = 5.0
    keep_alive: float = 30.0
    """An idle connection between requests."""
    write_deadline: float = 10.0
    """A stream of which nothing is acknowledged for so long ends, resumable."""
    user_timeout: float = 15.0
    """Unacknowledged data for this long ends the connection (RFC 5482)."""
    write_buffer: int = 8 * 1024
    not_sent: int = 16 * 1024
    max_request_head: int = 16 * 1024


@dataclass(slots=True)
class TcpTally:
    """Counters of the TCP door since its start."""

    connections: int = 0
    refused: int = 0
    faults: int = 0


class _Connection(TCPServer):
    """hypercorn's connection, which ends when its client has gone.

    0.18.0 waits out the keep-alive time first, and the connection counts as open till then.
    """

    _over = False

    async def _read_data(self) -> None:
        await super()._read_data()
        self._over = True
        await self.idle_task.stop()

    async def protocol_send(self, event: HypercornEvent) -> None:
        # An answer that ends after its client has left would start the wait again.
        if not (self._over and isinstance(event, Updated)):
            await super().protocol_send(event)


class TcpListener:
    """Accepts, counts, bounds and ends connections; hypercorn speaks HTTP/1.1 on them."""

    def __init__(
        self,
        app: ASGIApp,
        context: ssl.SSLContext,
        limits: TcpLimits,
        *,
        on_event: Callable[[Event], None],
    ) -> None:
        harden()
        self.tally = TcpTally()
        self._limits = limits
        self._tls = context
        self._on_event = on_event
        self._config = Config()
        self._config.accesslog = self._config.errorlog = None
        self._config.include_server_header = False
        self._config.keep_alive_timeout = limits.keep_alive
        self._config.h11_max_incomplete_size = limits.max_request_head
        self._app = wrap_app(app, 0, "asgi")  # type: ignore[arg-type]
        self._worker = WorkerContext(None)
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._open: dict[asyncio.Task[None], asyncio.WriteTransport | None] = {}
        self._admission = Admission(
            "tcp",
            "connections are open",
            most=limits.max_connections,
            most_per_address=limits.max_connections_per_address,
            on_event=on_event,
        )

    @property
    def connections(self) -> int:
        """Open, those in their handshake included."""
        return len(self._open)

    def listen(self, sockets: list[socket.socket]) -> None:
        """Serve these bound, listening sockets; the listener closes them."""
        self._sockets = sockets
        self._accepting = [asyncio.create_task(self._accept(each)) for each in sockets]

    def stop_accepting(self) -> None:
        for task in self._accepting:
            task.cancel()
        for each in self._sockets:
            each.close()
        self._sockets = []

    async def close(self, grace: float) -> None:
        """Let requests end for `grace` seconds, then abort what is left."""
        self.stop_accepting()
        await self._worker.terminated.set()
        if self._open:
            await asyncio.wait(list(self._open), timeout=grace)
        self.abort()
        if self._open:
            await asyncio.wait(list(self._open), timeout=_ABORTING)

    def abort(self) -> None:
        """End what is open, whatever is unsent."""
        self.stop_accepting()
        for task, transport in list(self._open.items()):
            if transport is not None:
                transport.abort()
            task.cancel()

    async def _accept(self, listening: socket.socket) -> None:
        """Count before the TLS handshake: what has only begun costs memory too."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError:
                # No descriptor left, or the client has gone already: not this socket's end.
                self.tally.refused += 1
                await asyncio.sleep(_ACCEPT_PAUSE)
                continue
            if not self._admission.admit(address[0]):
                self.tally.refused += 1
                connection.close()
                continue
            task = asyncio.create_task(self._serve(connection, address[0]))
            self._open[task] = None

    async def _serve(self, connection: socket.socket, host: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            reader, writer = await self._shake_hands(connection)
            self._open[task] = writer.transport
            self.tally.connections += 1
            writer.transport.set_write_buffer_limits(high=self._limits.write_buffer)
            writer.start_meter(connection)
            await self._speak(connection, reader, writer)
        except OSError:
            pass  # A handshake that failed, or a reset that 0.18.0 lets escape.
        except Exception as fault:  # noqa: BLE001  # a guard
            self._judge(fault)
        finally:
            transport = self._open.pop(task, None)
            self._admission.leave(host)
            if transport is not None:
                transport.abort()

    async def _shake_hands(
        self, connection: socket.socket
    ) -> tuple[asyncio.StreamReader, CountingWriter]:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=self._limits.handshake,
                ssl_shutdown_timeout=1.0,
            )
        except BaseException:
            connection.close()
            raise
        return reader, CountingWriter(transport, protocol, reader, loop)

    async def _speak(
        self,
        connection: socket.socket,
        reader: asyncio.StreamReader,
        writer: CountingWriter,
    ) -> None:
        state = {
            ABORT: writer.transport.abort,
            TUNE: lambda rate: _tune(connection, rate),
            METER: writer.meter,
        }
        loop = asyncio.get_running_loop()
        await _Connection(self._app, loop, self._config, self._worker, state, reader, writer)

    def _judge(self, fault: Exception) -> None:
        """Tell of what is a bug; resets and HTTP breaches are the peer's own business."""
        if isinstance(fault, ExceptionGroup):
            rest = fault.split((OSError, ProtocolError))[1]
            if rest is None:
                return
            fault = rest
        self.tally.faults += 1
        self._on_event(describe_fault("tcp", fault))


def bind_tcp(host: str, port: int, limits: TcpLimits) -> socket.socket:
    """A bound socket whose connections inherit these bounds; raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LEAST_SEND_BUFFER)
        for name, value in _linux_options(limits):
            bound.setsockopt(socket.IPPROTO_TCP, name, value)
        bound.setblocking(False)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def _linux_options(limits: TcpLimits) -> list[tuple[int, int]]:
    if not hasattr(socket, "TCP_USER_TIMEOUT"):
        return []
    return [
        (_TCP_NOTSENT_LOWAT, limits.not_sent),
        (socket.TCP_USER_TIMEOUT, round(limits.user_timeout * 1000)),
        (socket.TCP_KEEPIDLE, 15),
        (socket.TCP_KEEPINTVL, 5),
        (socket.TCP_KEEPCNT, 3),
    ]


def _tune(connection: socket.socket, bytes_per_second: int) -> None:
    """One second of audio may be in flight: below that a long path would starve the codec."""
    with contextlib.suppress(OSError):
        size = max(_LEAST_SEND_BUFFER, bytes_per_second)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
