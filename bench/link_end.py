"""One end of a road, in a process of its own: `python -m bench.link_end client HOST PORT FLOWS`.

It obeys orders, JSON lines on standard input, with an outcome each. An order is a turn: send
numbered packets to a schedule, and note how old those of the other end are when they arrive.
`server HOST PORT` is the other end; between turns it learns the addresses of the client's flows.
"""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import struct
import sys
import time
from array import array
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

from netem.kernel.processes import sharpen_timers

__all__ = ["HEADER", "MEET", "Ages", "Order", "Outcome", "ages_of", "main"]

HEADER: Final = struct.Struct("!HIQ")
"""Number of the turn, number of the packet, when it was sent in ns. Turn 0 is a greeting."""

MEET: Final = "meet"
"""The client's first order: greet until every flow is answered."""

_BATCH: Final = 32
"""Packets sent or taken before the other has its turn."""

_NAP: Final = 0.0002
"""Seconds that an end sleeps at least, where only packets are counted: waking for each of them
would take the processor that is to be measured.
"""

_NANO: Final = 1e9
_PATIENCE: Final = 5.0
"""Seconds within which the ends have met, or never will."""

_RECEIVE_BUFFER: Final = 64 << 20
_SO_RCVBUFFORCE: Final = 33
_SO_TIMESTAMPNS: Final = 35
_TIMESPEC: Final = struct.Struct("@qq")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Times in seconds; `begin` by the clock of `time.time`, which kernel timestamps have too."""

    turn: int
    begin: float
    seconds: float
    grace: float
    """Meanwhile, afterwards, packets still arrive."""
    rate: float
    """Packets a second to send; 0 for none."""
    size: int
    """Bytes of the UDP payload."""
    stamped: bool
    """Whether the kernel says when a packet arrived; otherwise it is when we read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ages:
    """Of all packets of a turn, in seconds; None where too few values would tell."""

    p50: float | None
    p99: float | None
    p999: float | None
    max: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    sent: int
    """Those that the kernel took."""
    refused: int
    received: int
    age: Ages
    """From just before `send` to the arrival."""
    last_age: float | None
    """The median of the last fifth: much above the delay, a queue was growing."""
    late: Ages
    """By how much this end missed its own schedule of sending."""
    unread: Ages
    """From the arrival to when this end read it; with `stamped` only."""
    cpu: float
    stepped: float
    """What the clock of `time.time` gained on the monotonic one meanwhile."""

    @classmethod
    def of(cls, text: str) -> Outcome:
        values = json.loads(text)
        ages = {name: Ages(**values[name]) for name in ("age", "late", "unread")}
        return cls(**{**values, **ages})


def ages_of(nanoseconds: array[int]) -> Ages:
    """A percentile is one only where values lie beyond it."""
    ordered = sorted(nanoseconds)

    def at(share: float) -> float | None:
        if len(ordered) * (1 - share) < 1:
            return None
        return ordered[int(len(ordered) * share)] / _NANO

    most = ordered[-1] / _NANO if ordered else None
    return Ages(p50=at(0.5), p99=at(0.99), p999=at(0.999), max=most)


class _Turn:
    """The sockets of an end at work for one order."""

    def __init__(
        self, order: Order, sockets: list[socket.socket], sends: list[Callable[[bytearray], int]]
    ) -> None:
        self._order = order
        self._sends = sends
        self._sockets = {each.fileno(): each for each in sockets}
        self._total = int(order.rate * order.seconds)
        self._begin = int(order.begin * _NANO)
        self._last = self._begin + int((order.seconds + order.grace / 4) * _NANO)
        self._end = self._begin + int((order.seconds + order.grace) * _NANO)
        self._packet, self._taken = bytearray(order.size), bytearray(2048)
        self._number = self._refused = 0
        self._stamps, self._ages, self._unread = array("q"), array("q"), array("q")
        self._take = self._take_stamped if order.stamped else self._take_plain

    def run(self) -> Outcome:
        step, cpu = time.time_ns() - time.monotonic_ns(), time.process_time()
        poll = select.epoll(len(self._sockets))
        for fd in self._sockets:
            poll.register(fd, select.EPOLLIN)
        with poll:
            while (now := time.time_ns()) < self._end:
                timeout = self._send_due(now)
                if timeout > 0.0:
                    # epoll itself would wait in whole milliseconds.
                    select.select([poll.fileno()], (), (), timeout)
                for fd, _ in poll.poll(0):
                    self._take(self._sockets[fd])
        cpu = time.process_time() - cpu
        return self._outcome(cpu, time.time_ns() - time.monotonic_ns() - step)

    def _send_due(self, now: int) -> float:
        """Send what is due, up to a batch; seconds until there is more to do."""
        rate, first = self._order.rate, self._number
        due = int((now - self._begin) * rate / _NANO) + 1 if now >= self._begin else 0
        if now > self._last:
            # What goes later would not arrive in time to be counted.
            self._total = first
        stop = min(self._total, due, first + _BATCH)
        turn, packet, sends, flows = self._order.turn, self._packet, self._sends, len(self._sends)
        clock, pack, stamps = time.time_ns, HEADER.pack_into, self._stamps.append
        for number in range(first, stop):
            stamp = clock()
            pack(packet, 0, turn, number, stamp)
            try:
                sends[number % flows](packet)
            except OSError:
                self._refused += 1
            stamps(stamp)
        if stop > first:
            self._number = stop
        if self._number >= self._total:
            return (self._end - now) / _NANO
        if self._number < due:
            return 0.0
        ahead = self._begin + self._number / rate * _NANO - time.time_ns()
        return ahead / _NANO if self._order.stamped else max(ahead / _NANO, _NAP)

    def _take_plain(self, readable: socket.socket) -> None:
        receive, data, unpack = readable.recv_into, self._taken, HEADER.unpack_from
        ages, wanted, now = self._ages.append, self._order.turn, time.time_ns()
        for _ in range(_BATCH):
            try:
                receive(data)
            except OSError:
                return
            turn, _, stamp = unpack(data)
            if turn == wanted:
                # One that came after `now` may seem never to have been under way.
                ages(now - stamp)

    def _take_stamped(self, readable: socket.socket) -> None:
        for _ in range(_BATCH):
            try:
                data, ancillary, _, _ = readable.recvmsg(2048, 64)
            except OSError:
                return
            now = time.time_ns()
            turn, _, stamp = HEADER.unpack_from(data)
            if turn == self._order.turn:
                seconds, nano = _TIMESPEC.unpack_from(ancillary[0][2])
                arrived = seconds * 1_000_000_000 + nano
                self._ages.append(arrived - stamp)
                self._unread.append(now - arrived)

    def _outcome(self, cpu: float, stepped: int) -> Outcome:
        rate = self._order.rate
        late = array(
            "q",
            (
                max(0, stamp - self._begin - int(number * _NANO / rate))
                for number, stamp in enumerate(self._stamps)
            ),
        )
        ages = self._ages
        return Outcome(
            sent=self._number - self._refused,
            refused=self._refused,
            received=len(ages),
            age=ages_of(ages),
            last_age=ages_of(ages[len(ages) * 4 // 5 :]).p50,
            late=ages_of(late),
            unread=ages_of(self._unread),
            cpu=cpu,
            stepped=stepped / _NANO,
        )


class _End:
    """What both ends have in common: orders in, outcomes out."""

    def __init__(self) -> None:
        self.sockets: list[socket.socket] = []
        self.sends: list[Callable[[bytearray], int]] = []

    def add(self, bound: tuple[str, int]) -> socket.socket:
        added = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            added.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER)
        except PermissionError:
            added.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        added.bind(bound)
        added.setblocking(False)
        self.sockets.append(added)
        return added

    def obey(self, order: str) -> Outcome:
        turn = Order(**json.loads(order))
        for each in self.sockets:
            each.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, int(turn.stamped))
        outcome = _Turn(turn, self.sockets, self.sends).run()
        gc.collect()
        return outcome


class _Client(_End):
    def __init__(self, server: tuple[str, int], flows: int) -> None:
        super().__init__()
        for _ in range(flows):
            added = self.add(("", 0))
            added.connect(server)
            self.sends.append(added.send)

    def meet(self) -> None:
        """Greet by every flow until the server knows it, however much is lost on the way."""
        missing = dict(enumerate(self.sockets))
        deadline = time.monotonic() + _PATIENCE
        while missing and time.monotonic() < deadline:
            for number, each in missing.items():
                each.send(HEADER.pack(0, number, 0))
            # An answer may take its time on a road that delays.
            readable, _, _ = select.select(missing.values(), (), (), 0.2)
            time.sleep(0.1 if readable else 0.0)
            for number, each in list(missing.items()):
                try:
                    each.recv(2048)
                except OSError:
                    continue
                del missing[number]
        if missing:
            raise TimeoutError(f"{len(missing)} flows got no answer in {_PATIENCE:g} s")

    def serve(self) -> None:
        for order in sys.stdin:
            if order.strip() == MEET:
                self.meet()
                _say({})
            else:
                _say(asdict(self.obey(order)))


class _Server(_End):
    def __init__(self, bound: tuple[str, int]) -> None:
        super().__init__()
        self._socket = self.add(bound)
        self._flows: dict[int, tuple[str, int]] = {}

    def serve(self) -> None:
        while True:
            readable, _, _ = select.select([0, self._socket.fileno()], (), ())
            if self._socket.fileno() in readable:
                self._greeted()
            if 0 in readable:
                order = sys.stdin.readline()
                if not order:
                    return
                _say(asdict(self.obey(order)))

    def _greeted(self) -> None:
        """Answer a greeting, and send to where it came from in the next turns."""
        data, address = self._socket.recvfrom(2048)
        turn, number, _ = HEADER.unpack_from(data)
        if turn:
            return
        self._flows[number] = address
        self._socket.sendto(data, address)
        send = self._socket.sendto
        self.sends = [
            lambda packet, to=to: send(packet, to)  # type: ignore[misc]
            for _, to in sorted(self._flows.items())
        ]


def _say(answer: dict[str, object]) -> None:
    print(json.dumps(answer), flush=True)


def main(arguments: list[str]) -> None:
    side, host, port, *flows = arguments
    sharpen_timers()
    end: _Client | _Server
    if side == "client":
        end = _Client((host, int(port)), int(flows[0]))
    else:
        end = _Server((host, int(port)))
        bound: tuple[str, int] = end.sockets[0].getsockname()
        _say({"port": bound[1]})
    gc.freeze()
    gc.disable()
    end.serve()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(0)
