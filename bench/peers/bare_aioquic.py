"""A bare aioquic server: a task per request that writes each group when it is due."""

from __future__ import annotations

import argparse
import asyncio
import logging

import uvloop
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, ProtocolNegotiated, QuicEvent

from bench.peers.work import group_size, payload, schedule


class _Protocol(QuicConnectionProtocol):
    _http: H3Connection | None = None
    _task: asyncio.Task[None] | None = None

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated):
            self._http = H3Connection(self._quic)
        elif isinstance(event, ConnectionTerminated) and self._task is not None:
            self._task.cancel()
        if self._http is None:
            return
        for http_event in self._http.handle_event(event):
            if isinstance(http_event, HeadersReceived):
                path = dict(http_event.headers)[b":path"].decode()
                stream = self._stream(http_event.stream_id, group_size(path.partition("?")[2]))
                self._task = asyncio.create_task(stream)

    async def _stream(self, stream_id: int, group: int) -> None:
        assert self._http is not None
        self._http.send_headers(stream_id, [(b":status", b"200")])
        loop = asyncio.get_running_loop()
        began = loop.time()
        for due, first, count in schedule(group):
            if due:
                await asyncio.sleep(began + due - loop.time())
            self._http.send_data(stream_id, payload(first, count), end_stream=False)
            self.transmit()


async def _main(certificate: str, key: str) -> None:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(certificate, key)
    server = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=_Protocol)
    transport = server._transport  # noqa: SLF001  # the only way to learn the port
    assert transport is not None
    print(transport.get_extra_info("sockname")[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("certificate")
    parser.add_argument("key")
    options = parser.parse_args()
    # What it thinks of single packets would only be noise between the progress bars.
    logging.getLogger("quic").setLevel(logging.CRITICAL)
    uvloop.run(_main(options.certificate, options.key))
