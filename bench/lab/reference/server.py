"""The reference server: `main([CERTIFICATE, KEY])`; each order on standard input is a line.

Every line is answered by one: how late a frame was sent, at worst, since the last answer.
Connections that are still there are closed by then.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, QuicEvent, StreamDataReceived

from bench.lab.listening.ask import FLOOR_PORT, HOST, REFERENCE_PORT
from bench.lab.payload import FRAME_NANO, frame
from bench.lab.reference import floor
from bench.lab.reference.request import ALPN, LARGEST_DATAGRAM_FRAME, LARGEST_REQUEST, Request

__all__ = ["main"]

_NANO: Final = 1e9


@dataclass(slots=True)
class _Book:
    """Of all connections."""

    send_lag: int = 0
    """Nanoseconds."""
    open: set[_Sender] = field(default_factory=set)


class _Sender(QuicConnectionProtocol):
    """Sends what its listener asks for, a frame every 20 ms."""

    def __init__(self, quic: QuicConnection, stream_handler: None = None, *, book: _Book) -> None:
        super().__init__(quic, stream_handler)
        self._book = book
        self._asked = b""
        self._task: asyncio.Task[None] | None = None
        book.open.add(self)

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived) and self._task is None:
            self._asked += event.data
            if len(self._asked) > LARGEST_REQUEST:
                self.close()
            elif event.end_stream:
                self._task = asyncio.ensure_future(self._send(json.loads(self._asked)))
        elif isinstance(event, ConnectionTerminated):
            self._book.open.discard(self)
            if self._task is not None:
                self._task.cancel()

    async def _send(self, request: Request) -> None:
        ways: dict[str, Callable[[bytes], None]] = {
            "datagram": self._quic.send_datagram_frame,
            "streams": self._on_stream,
        }
        send, frames, copies = ways[request["way"]], request["frames"], request["copies"]
        began = time.monotonic_ns()
        for number in range(frames + copies):
            now = await _sleep_until(began + number * FRAME_NANO)
            self._book.send_lag = max(self._book.send_lag, now - began - number * FRAME_NANO)
            for each in range(number, number - copies - 1, -1):
                if 0 <= each < frames:
                    send(frame(each, began + each * FRAME_NANO))
            self.transmit()

    def _on_stream(self, payload: bytes) -> None:
        stream_id = self._quic.get_next_available_stream_id(is_unidirectional=True)
        self._quic.send_stream_data(stream_id, payload, end_stream=True)


async def _sleep_until(instant: int) -> int:
    """When it was over."""
    while (now := time.monotonic_ns()) < instant:  # noqa: ASYNC110 - a timer may be early
        await asyncio.sleep((instant - now) / _NANO)
    return now


async def _main(certificate: str, key: str) -> None:
    book = _Book()
    for port, congestion in ((REFERENCE_PORT, "reno"), (FLOOR_PORT, floor.NAME)):
        configuration = QuicConfiguration(
            is_client=False,
            alpn_protocols=[ALPN],
            congestion_control_algorithm=congestion,
            max_datagram_frame_size=LARGEST_DATAGRAM_FRAME,
        )
        configuration.load_cert_chain(certificate, key)
        await serve(
            HOST,
            port,
            configuration=configuration,
            create_protocol=lambda *given, **named: _Sender(*given, **named, book=book),
        )
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin
    )
    gc.freeze()
    # Between two waves there is time for it; in one it would be a late frame.
    gc.disable()
    _say({"ready": True})
    while await orders.readline():
        for sender in tuple(book.open):
            sender.close()
        book.open.clear()
        _say({"send_lag": book.send_lag / _NANO})
        book.send_lag = 0
        gc.collect()


def _say(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    certificate, key = arguments
    # What it thinks of single packets is no figure of ours.
    logging.getLogger("quic").setLevel(logging.CRITICAL)
    with suppress(KeyboardInterrupt, BrokenPipeError):
        asyncio.run(_main(certificate, key))
    os._exit(0)
