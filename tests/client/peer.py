"""A server made by hand, one for each transport, that plays the same script on both."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import h11
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer, serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import NetworkAddress
from aioquic.quic.events import QuicEvent

from tenuto.media import AudioFormat, Frame
from tenuto.wire import MEDIA_TYPE, End, Format, Gap, Mark, Notice, RecordEncoder
from tests.client.authority import Pair

RECORDS = f"{MEDIA_TYPE}; v=1"
ENCODER = RecordEncoder()
AUDIO = AudioFormat()

Encodable = Frame | Format | Gap | Mark | Notice | End


def records(*parts: Encodable) -> bytes:
    return b"".join(map(ENCODER.encode, parts))


def frames(count: int, start: int = 0, audio: AudioFormat = AUDIO) -> list[Frame]:
    """Each filled with its own number, so that none passes for another."""
    size = audio.frame_size // 2
    return [
        Frame(n, (n % 65536).to_bytes(2, "little") * size, audio.samples_per_frame)
        for n in range(start, start + count)
    ]


def sentence(count: int) -> bytes:
    """A whole stream of `count` full frames."""
    end = End(count, count * AUDIO.samples_per_frame)
    return records(Format(AUDIO, 0), *frames(count), end)


@dataclass
class Asked:
    """What the client sent."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


class Out(Protocol):
    """How a script answers."""

    async def head(self, status: int = 200, kind: str = RECORDS, **more: str) -> None: ...
    async def send(self, data: bytes) -> None: ...
    async def end(self) -> None: ...
    async def cut(self, code: int = 0x54454E10) -> None: ...


Script = Callable[[Asked, Out], Awaitable[None]]


def whole(body: bytes) -> Script:
    async def script(asked: Asked, out: Out) -> None:
        await out.head(tenuto_session="s-1")
        await out.send(body)
        await out.end()

    return script


def problem(status: int, **fields: object) -> Script:
    async def script(asked: Asked, out: Out) -> None:
        await out.head(status, "application/problem+json")
        await out.send(json.dumps({"status": status, **fields}).encode())
        await out.end()

    return script


def _fields(status: int, kind: str, more: dict[str, str]) -> list[tuple[bytes, bytes]]:
    named = {"content-type": kind, **{n.replace("_", "-"): v for n, v in more.items()}}
    return [(n.encode(), v.encode()) for n, v in named.items()]


# --- QUIC


class QuicOut:
    LIMIT = 256 * 1024

    def __init__(self, protocol: Http3Protocol, stream_id: int) -> None:
        self._protocol = protocol
        self._stream_id = stream_id
        self.sent = 0

    async def head(self, status: int = 200, kind: str = RECORDS, **more: str) -> None:
        head = [(b":status", str(status).encode()), *_fields(status, kind, more)]
        self._protocol.http.send_headers(self._stream_id, head)
        self._protocol.transmit()

    async def send(self, data: bytes) -> None:
        self._protocol.http.send_data(self._stream_id, data, end_stream=False)
        self._protocol.transmit()
        sender = self._protocol._quic._streams[self._stream_id].sender
        while sender._buffer_stop - sender._buffer_start > self.LIMIT:
            await asyncio.sleep(0.002)
        self.sent += len(data)

    async def end(self) -> None:
        self._protocol.http.send_data(self._stream_id, b"", end_stream=True)
        self._protocol.transmit()

    async def cut(self, code: int = 0x54454E10) -> None:
        await asyncio.sleep(0.05)  # what was written must be there before RESET_STREAM
        self._protocol._quic.reset_stream(self._stream_id, code)
        self._protocol.transmit()


class Http3Protocol(QuicConnectionProtocol):
    peer: Peer

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self._asked: dict[int, Asked] = {}

    def datagram_received(self, data: bytes | str, addr: NetworkAddress) -> None:
        self.peer.datagrams += 1
        super().datagram_received(data, addr)

    def quic_event_received(self, event: QuicEvent) -> None:
        for happened in self.http.handle_event(event):
            if isinstance(happened, HeadersReceived):
                named = {n.decode(): v.decode() for n, v in happened.headers}
                asked = Asked(named.pop(":method"), named.pop(":path"), named)
                self._asked[happened.stream_id] = asked
            elif isinstance(happened, DataReceived):
                self._asked[happened.stream_id].body += happened.data
            if isinstance(happened, HeadersReceived | DataReceived) and happened.stream_ended:
                out = QuicOut(self, happened.stream_id)
                self.peer.play(self._asked.pop(happened.stream_id), out)


# --- TCP


class TcpOut:
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.sent = 0

    async def head(self, status: int = 200, kind: str = RECORDS, **more: str) -> None:
        fields = [*_fields(status, kind, more), (b"transfer-encoding", b"chunked")]
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in fields)
        self._writer.write(b"HTTP/1.1 %d X\r\n%s\r\n" % (status, lines))

    async def send(self, data: bytes) -> None:
        self._writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self._writer.drain()
        self.sent += len(data)

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def cut(self, code: int = 0) -> None:
        await self._writer.drain()
        self._writer.close()


# --- both


class Nowhere:
    """A transport that has lost its socket."""

    def sendto(self, data: bytes, address: object) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass
class Peer:
    """Keeps what it was asked and counts datagrams; `port` is the same for both transports."""

    script: Script
    port: int = 0
    asked: list[tuple[str, Asked]] = field(default_factory=list)
    outs: list[QuicOut | TcpOut] = field(default_factory=list)
    quic: QuicServer | None = None
    datagrams: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def url(self, host: str = "localhost", path: str = "/v1/speak?text=x") -> str:
        return f"https://{host}:{self.port}{path}"

    def vanish(self) -> None:
        """Take the UDP socket away without a word, as a killed process does."""
        assert self.quic is not None
        for protocol in self.quic._protocols.values():
            protocol._transport = cast(asyncio.DatagramTransport, Nowhere())
        cast(asyncio.DatagramTransport, self.quic._transport).abort()

    def drop(self) -> None:
        """End every connection, in the midst of whatever it carries."""
        for out in self.outs:
            (out._protocol if isinstance(out, QuicOut) else out._writer).close()

    def play(self, asked: Asked, out: QuicOut | TcpOut) -> None:
        self.asked.append(("quic" if isinstance(out, QuicOut) else "tcp", asked))
        self.outs.append(out)
        task = asyncio.ensure_future(self._run(asked, out))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _run(self, asked: Asked, out: Out) -> None:
        with suppress(ConnectionError, KeyError):  # the client has gone
            await self.script(asked, out)

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked: Asked | None = None
        with suppress(ConnectionError):
            while asked is None or "connection" not in asked.headers:  # else it is to be closed
                asked = await self._read_request(reader)
                if asked is None:
                    writer.close()
                    return
                self.play(asked, TcpOut(writer))

    async def _read_request(self, reader: asyncio.StreamReader) -> Asked | None:
        """None for what is no request."""
        http = h11.Connection(our_role=h11.SERVER)
        asked: Asked | None = None
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(await reader.read(65536))
            elif isinstance(event, h11.Request):
                named = {n.decode(): v.decode() for n, v in event.headers}
                asked = Asked(event.method.decode(), event.target.decode(), named)
            elif isinstance(event, h11.Data):
                assert asked is not None
                asked.body += bytes(event.data)
            else:
                return asked if isinstance(event, h11.EndOfMessage) else None


@asynccontextmanager
async def serving(
    pair: Pair,
    script: Script,
    *,
    host: str = "127.0.0.1",
    transports: tuple[str, ...] = ("quic", "tcp"),
    quic_pair: Pair | None = None,
) -> AsyncIterator[Peer]:
    """A peer on one free port of `host`; the transports left out have nobody there."""
    peer = Peer(script)
    async with AsyncExitStack() as stack:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.cert, pair.key)
        context.set_alpn_protocols(["http/1.1"])
        configuration = None
        if "quic" in transports:
            configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
            chosen = quic_pair or pair
            configuration.load_cert_chain(chosen.cert, chosen.key)
        tcp = await _listen(peer, host, context, configuration)
        stack.callback(tcp.close)
        if peer.quic is not None:
            stack.callback(peer.quic.close)
        if "tcp" not in transports:
            tcp.close()
        try:
            yield peer
        finally:
            for task in tuple(peer.tasks):
                task.cancel()
            await asyncio.gather(*peer.tasks, return_exceptions=True)
            for out in peer.outs:
                if isinstance(out, TcpOut):
                    out._writer.transport.abort()
    await asyncio.sleep(0)


async def _listen(
    peer: Peer, host: str, context: ssl.SSLContext, configuration: QuicConfiguration | None
) -> asyncio.Server:
    """On a port that is free for TCP and, if there is to be QUIC, for UDP too."""
    for _ in range(20):
        tcp = await asyncio.start_server(peer.accept, host, 0, ssl=context)
        peer.port = tcp.sockets[0].getsockname()[1]
        if configuration is None:
            return tcp
        protocol = type("Bound", (Http3Protocol,), {"peer": peer})
        try:
            peer.quic = await serve(
                host, peer.port, configuration=configuration, create_protocol=protocol
            )
        except OSError:
            # Somebody has that port for UDP.
            tcp.close()
        else:
            return tcp
    raise OSError("no port is free for both")
