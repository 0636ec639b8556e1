"""The work of a relay: which socket a datagram goes to, and what became of the sockets."""

import select
import selectors
import socket
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

from netem.drivers.report import Lateness
from netem.drivers.udp import (
    Address,
    Target,
    connected_socket,
    dropped_by,
    headers,
    socket_address,
    told_by_icmp,
)
from netem.lateness import Histogram
from netem.link import Endpoint, Flow, Packet, Path, PathTally
from netem.profile import Profile, Way

__all__ = ["MAX_FLOWS", "Forwarder", "RelayCounts"]

MAX_FLOWS: Final = 256
"""Sockets towards the server. Above it the flow least recently used loses its own."""

_UDP: Final = 17
_LARGEST: Final = 65_536
_BATCH: Final = 64
"""Datagrams read from one socket before the others have their turn."""
_LONGEST_WAIT: Final = 1.0
_SELECTABLE: Final = 1024
"""File descriptors that `select` can take on every system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayCounts:
    flows: int
    """Sockets towards the server that are open now."""
    evicted: int
    """Closed to make room for another."""
    idled: int
    """Closed because nothing came either way for long."""
    refused: int
    """Errors on the sockets towards the server, such as ICMP's word that it is not there."""
    send_errors: int
    """Datagrams that came out of the path and that the kernel did not take."""


@dataclass(slots=True)
class _Upstream:
    """A client as the server sees it."""

    socket: socket.socket
    flow: Flow
    used: float


class Forwarder:
    def __init__(
        self,
        profile: Profile,
        seed: int,
        listener: socket.socket,
        server: Target,
        idle: float,
    ) -> None:
        self._path = Path(profile, seed, time.monotonic())
        self._listener = listener
        self._headers = headers(listener.family)
        self._target = server
        self._server = Endpoint(server.host, server.port)
        self._idle = idle
        self._upstreams: OrderedDict[Flow, _Upstream] = OrderedDict()
        self._wake, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._lateness = Histogram()
        self._drops = 0
        self._evicted = self._idled = self._refused = self._send_errors = 0

    def tally(self) -> PathTally:
        return self._path.tally()

    def counts(self) -> RelayCounts:
        return RelayCounts(
            flows=len(self._upstreams),
            evicted=self._evicted,
            idled=self._idled,
            refused=self._refused,
            send_errors=self._send_errors,
        )

    def machinery(self) -> dict[str, Any]:
        """How true it was to the path, in the terms of `BedTally`."""
        open_now = [self._listener, *(each.socket for each in self._upstreams.values())]
        lateness: dict[str, Any] = dict(self._lateness.summary())
        return {
            "lateness": Lateness(**lateness),
            "write_errors": self._send_errors,
            "unread": self._drops + sum(map(dropped_by, open_now)),
        }

    def wake(self) -> None:
        """From another thread: `wait` returns."""
        self._wake.send(b"\0")

    def close(self) -> None:
        while self._upstreams:
            self._drop_oldest()
        self._selector.close()
        self._wake.close()
        self._woken.close()

    def wait(self) -> list[selectors.SelectorKey]:
        """Until something can be read or is due."""
        timeout = min(_LONGEST_WAIT, self._idle)
        deadline = self._path.next_deadline()
        if deadline is not None:
            timeout = max(0.0, min(timeout, deadline - time.monotonic()))
        number = getattr(self._selector, "fileno", lambda: _SELECTABLE)()
        if number < _SELECTABLE:
            # epoll waits in whole milliseconds, rounded up; select on it, in microseconds.
            select.select([number], (), (), timeout)
            timeout = 0.0
        return [key for key, _ in self._selector.select(timeout)]

    def turn(self, ready: list[selectors.SelectorKey]) -> None:
        """Take in what can be read, send what is due."""
        for key in ready:
            if key.fileobj is self._listener:
                self._from_clients()
            elif isinstance(key.data, _Upstream):
                self._from_server(key.data)
        now = time.monotonic()
        # Asked deadline by deadline, so that each lateness is known.
        while (due := self._path.next_deadline()) is not None and due <= now:
            for way, packet in self._path.pop_due(due):
                assert packet.flow is not None
                if way is Way.UP:
                    self._to_server(packet.data, packet.flow, now)
                else:
                    self._to_client(packet.data, packet.flow.client)
                self._lateness.add(time.monotonic() - due)
        while self._upstreams and now - self._oldest().used >= self._idle:
            self._drop_oldest()
            self._idled += 1

    def _from_clients(self) -> None:
        for _ in range(_BATCH):
            try:
                data, source = self._listener.recvfrom(_LARGEST)
            except ConnectionError:
                continue  # Windows tells us of clients that went away.
            except BlockingIOError:
                return
            flow = Flow(_UDP, _endpoint(source), self._server)
            self._offer(Way.UP, data, flow)

    def _from_server(self, upstream: _Upstream) -> None:
        for _ in range(_BATCH):
            try:
                data = upstream.socket.recv(_LARGEST)
            except BlockingIOError:
                return
            except OSError as error:
                self._refused += 1
                if told_by_icmp(error):
                    continue
                # Such as an interface that went down. The next datagram opens another socket.
                self._drop(upstream)
                return
            self._use(upstream, time.monotonic())
            self._offer(Way.DOWN, data, upstream.flow)

    def _offer(self, way: Way, data: bytes, flow: Flow) -> None:
        # Refusals are answered by the closed port of the profiles that have them.
        self._path.offer(way, Packet(data, len(data) + self._headers, flow), time.monotonic())

    def _to_client(self, data: bytes, client: Endpoint) -> None:
        try:
            self._listener.sendto(data, _address(client))
        except OSError:
            self._send_errors += 1

    def _to_server(self, data: bytes, flow: Flow, now: float) -> None:
        try:
            upstream = self._upstreams.get(flow) or self._open(flow, now)
            self._use(upstream, now)
            self._send(upstream.socket, data)
        except OSError:
            self._send_errors += 1

    def _send(self, upstream: socket.socket, data: bytes) -> None:
        try:
            upstream.send(data)
        except OSError as error:
            if not told_by_icmp(error):
                raise
            self._refused += 1
            upstream.send(data)

    def _open(self, flow: Flow, now: float) -> _Upstream:
        if len(self._upstreams) >= MAX_FLOWS:
            self._drop_oldest()
            self._evicted += 1
        upstream = _Upstream(connected_socket(self._target), flow, now)
        self._upstreams[flow] = upstream
        self._selector.register(upstream.socket, selectors.EVENT_READ, upstream)
        return upstream

    def _use(self, upstream: _Upstream, now: float) -> None:
        upstream.used = now
        self._upstreams.move_to_end(upstream.flow)

    def _oldest(self) -> _Upstream:
        return next(iter(self._upstreams.values()))

    def _drop_oldest(self) -> None:
        self._drop(self._oldest())

    def _drop(self, upstream: _Upstream) -> None:
        del self._upstreams[upstream.flow]
        self._selector.unregister(upstream.socket)
        self._drops += dropped_by(upstream.socket)
        upstream.socket.close()


def _endpoint(source: tuple[str, int] | tuple[str, int, int, int]) -> Endpoint:
    """With the interface of a link-local address, as RFC 4007 writes it."""
    scope = source[3] if len(source) == 4 else 0
    return Endpoint(f"{source[0]}%{scope}" if scope else source[0], source[1])


def _address(client: Endpoint) -> Address:
    host, _, scope = str(client.address).partition("%")
    return socket_address(host, client.port, int(scope or 0))
