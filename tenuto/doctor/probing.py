"""Sends trains of probes, and notes what comes back and when."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from tenuto.client.target import Address
from tenuto.doctor.diagnosis.evidence import Icmp, Ledger, Probe
from tenuto.doctor.diagnosis.negotiation import ProbeId, read_answer, version_probe
from tenuto.doctor.diagnosis.train import Order, Train, refused, waits_until
from tenuto.doctor.errqueue import (
    SocketError,
    errors_behind,
    explained,
    prepare,
    queued_errors,
)

__all__ = ["Probing", "udp_socket"]

_DATAGRAM = 65536
_MOST_AT_ONCE = 128

_POLL = 0.002
"""Seconds between looks at the sockets where the loop cannot watch them (Windows)."""


def udp_socket(address: Address) -> socket.socket:
    """Connected, non-blocking, with its errors asked for; `OSError` where there is no way."""
    made = socket.socket(address.family, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        prepare(made)
        made.connect(address.sockaddr)
    except BaseException:
        made.close()
        raise
    return made


class Probing:
    """One examination by trains; each flow is a socket of its own."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._overhead = 48 if address.family == socket.AF_INET6 else 28
        self._nonce = os.urandom(4)
        self._loop = asyncio.get_running_loop()
        self._sockets: dict[int, socket.socket] = {}
        self._stirred = asyncio.Event()
        self._watched = True
        self._probes: list[Probe] = []
        self._places: dict[tuple[int, int], int] = {}
        self._icmp: list[Icmp] = []
        self._strange = 0
        self._done = Ledger()

    @property
    def ledger(self) -> Ledger:
        """Also while a train is under way, or after it was cancelled."""
        return self._done.and_then(Ledger(tuple(self._probes), tuple(self._icmp), self._strange))

    async def examine(self, decide: Callable[[Ledger], Train | None]) -> Ledger:
        """Send the trains that `decide` asks for, until it asks for no more."""
        try:
            while (train := decide(self._done)) is not None:
                await self._fly(train)
                self._done = self.ledger
                self._probes, self._places, self._icmp, self._strange = [], {}, [], 0
        finally:
            self._close()
        return self._done

    async def _fly(self, train: Train) -> None:
        started = self._loop.time()
        waiting = list(reversed(train.orders))
        while True:
            now = self._loop.time()
            while waiting and started + waiting[-1].after <= now:
                self._send(waiting.pop(), now)
            self._drain()
            if refused(self._probes, self._icmp):
                waiting.clear()
            if waiting:
                due = started + waiting[-1].after
            else:
                due = waits_until(self._probes, self._icmp)
                if self._loop.time() >= due:
                    return
            await self._wait(due - self._loop.time())

    async def _wait(self, seconds: float) -> None:
        if not self._watched:
            await asyncio.sleep(max(0.0, min(seconds, _POLL)))
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._stirred.wait()
        self._stirred.clear()

    def _send(self, order: Order, now: float) -> None:
        self._places[order.flow, order.number] = len(self._probes)
        self._probes.append(Probe(order.flow, order.number, order.size, now))
        data = version_probe(
            ProbeId(self._nonce, order.flow, order.number), order.size - self._overhead
        )
        try:
            made = self._socket(order.flow)
            try:
                made.send(data)
            except (BlockingIOError, InterruptedError):
                pass  # lost, as on a path
            except OSError as error:
                self._add(order.flow, queued_errors(made) or explained(error))
                # It may have been an earlier packet's, and this one was not sent.
                if error.errno != errno.EMSGSIZE:
                    made.send(data)
        except OSError as error:
            self._add(order.flow, explained(error))

    def _add(self, flow: int, errors: list[SocketError]) -> None:
        now = self._loop.time()
        self._icmp += [Icmp(now, flow, error.kind, error.by, error.mtu) for error in errors]

    def _socket(self, flow: int) -> socket.socket:
        made = self._sockets.get(flow)
        if made is None:
            made = self._sockets[flow] = udp_socket(self._address)
            try:
                self._loop.add_reader(made, self._stirred.set)
            except NotImplementedError:
                self._watched = False
        return made

    def _drain(self) -> None:
        for flow, made in self._sockets.items():
            self._add(flow, queued_errors(made))
            for _ in range(_MOST_AT_ONCE):
                try:
                    data = made.recv(_DATAGRAM)
                except (BlockingIOError, InterruptedError):
                    break
                except OSError as error:
                    self._add(flow, errors_behind(made, error))
                    continue
                self._answered(data)

    def _answered(self, data: bytes) -> None:
        answer = read_answer(data, self._nonce)
        if answer is None:
            self._strange += 1
            return
        place = self._places.get((answer.flow, answer.number))
        if place is not None and self._probes[place].answered is None:
            self._probes[place] = replace(self._probes[place], answered=self._loop.time())

    def _close(self) -> None:
        for made in self._sockets.values():
            if self._watched:
                self._loop.remove_reader(made)
            made.close()
        self._sockets = {}
