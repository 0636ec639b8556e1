"""The reference listener: takes frames from DATAGRAMs and from unidirectional streams."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import (
    ConnectionTerminated,
    DatagramFrameReceived,
    QuicEvent,
    StreamDataReceived,
)

from bench.lab.listening.ask import FLOOR_PORT, HOST, REFERENCE_PORT, Ask
from bench.lab.listening.heard import Heard
from bench.lab.reference.request import ALPN, LARGEST_DATAGRAM_FRAME, Request

__all__ = ["listen"]


class _Listener(QuicConnectionProtocol):
    def __init__(self, quic: QuicConnection, stream_handler: None = None, *, heard: Heard) -> None:
        super().__init__(quic, stream_handler)
        self._heard = heard
        self._begun: dict[int, bytes] = {}
        """What has come of streams that have not ended."""

    def ask(self, request: Request) -> None:
        stream_id = self._quic.get_next_available_stream_id()
        self._quic.send_stream_data(stream_id, json.dumps(request).encode(), end_stream=True)
        self.transmit()

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, DatagramFrameReceived):
            self._heard.frame(event.data)
        elif isinstance(event, StreamDataReceived):
            data = self._begun.pop(event.stream_id, b"") + event.data
            if event.end_stream:
                self._heard.frame(data)
            else:
                self._begun[event.stream_id] = data
        elif isinstance(event, ConnectionTerminated):
            self._heard.fail(f"the connection ended: {event.reason_phrase or event.error_code}")


async def listen(ask: Ask, heard: Heard) -> None:
    configuration = QuicConfiguration(
        is_client=True,
        alpn_protocols=[ALPN],
        cafile=ask.ca,
        max_datagram_frame_size=LARGEST_DATAGRAM_FRAME,
        server_name="localhost",
    )
    port = FLOOR_PORT if ask.options["floor"] else REFERENCE_PORT
    made = cast(Callable[..., Any], lambda *given, **named: _Listener(*given, **named, heard=heard))
    async with connect(HOST, port, configuration=configuration, create_protocol=made) as connected:
        heard.connected()
        listener = cast(_Listener, connected)
        listener.ask(
            Request(
                way=str(ask.options["way"]),
                frames=ask.frames,
                copies=int(ask.options["copies"]),
            )
        )
        await heard.hold()
