"""The TCP door by raw bytes: chunks, versions, ambiguity, leaving, bounds."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from fallback import TcpLimits
from tenuto.sources import COUNTERS
from tenuto.telemetry.events import ConnectionRefused, Event, PeerFaulted
from tests.conftest import StartServer

RECORDS = "Accept: application/vnd.tenuto.records; v=1\r\n"


class Raw:
    """A TLS connection spoken to in bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port: int, ca: Path, *, alpn: str = "http/1.1") -> Raw:
        context = ssl.create_default_context(cafile=ca)
        if alpn:
            context.set_alpn_protocols([alpn])
        return cls(
            *await asyncio.open_connection(
                "127.0.0.1", port, ssl=context, server_hostname="localhost"
            )
        )

    async def ask(self, text: str | bytes) -> bytes:
        """Send, and read until the server closes or is silent for half a second."""
        self.writer.write(text.encode() if isinstance(text, str) else text)
        received = b""
        try:
            while data := await asyncio.wait_for(self.reader.read(65536), 0.5):
                received += data
        except (TimeoutError, ConnectionError, ssl.SSLError):
            pass
        return received

    def close(self) -> None:
        self.writer.transport.abort()


def get(path: str, extra: str = "", version: str = "1.1") -> str:
    return f"GET {path} HTTP/{version}\r\nHost: localhost\r\n{extra}\r\n"


async def answer(port: int, ca: Path, text: str | bytes) -> bytes:
    raw = await Raw.open(port, ca)
    try:
        return await raw.ask(text)
    finally:
        raw.close()


def chunks(response: bytes) -> list[bytes]:
    """The chunks of a response; the last is empty where the zero chunk came."""
    _, _, rest = response.partition(b"\r\n\r\n")
    found = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        found.append(rest[:length])
        rest = rest[length + 2 :]
    return found


@pytest.mark.parametrize(("rate", "channels"), [(8000, 1), (16000, 1), (48000, 2), (192000, 2)])
async def test_chunks_hold_whole_frames_and_never_too_many(
    rate: int, channels: int, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    path = f"/v1/speak?source=counting&frames=40&rate={rate}&channels={channels}&lead=max"
    found = chunks(await answer(server.port, ca_file, get(path)))
    assert found[-1] == b""
    frame = rate // 50 * channels * 2
    first, *rest = found[:-1]
    # The header and at most two frames come first of all.
    assert len(first) <= 44 + 2 * frame
    assert sum(map(len, found)) == 44 + 40 * frame
    for chunk in rest:
        assert len(chunk) <= 32768
        assert len(chunk) % frame == 0
        assert len(chunk) <= 10 * frame


async def test_paced_chunks_hold_five_frames(start_server: StartServer, ca_file: Path) -> None:
    server = await start_server()
    path = "/v1/speak?source=counting&frames=60&lead=0.2"
    raw = await Raw.open(server.port, ca_file)
    response = await raw.ask(get(path))
    raw.close()
    sizes = [len(chunk) // 640 for chunk in chunks(response)]
    assert sum(sizes) == 60
    first = next(number for number, size in enumerate(sizes) if size)
    assert sizes[first] <= 2
    # A loop that was late may send more of what is due together, never less than a chunk.
    assert all(5 <= size <= 10 for size in sizes[first + 1 : -2]), sizes


@pytest.mark.parametrize(
    ("name", "request_bytes", "expected"),
    [
        ("HTTP/2 by prior knowledge", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (b"505",)),
        ("no Host", b"GET /healthz HTTP/1.1\r\n\r\n", (b"400",)),
        ("bare rubbish", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20, (b"400", b"")),
        ("bad chunk size", b"POST /v1/speak HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked"
         b"\r\n\r\nzz\r\n", (b"400",)),
        ("both lengths", b"POST /v1/speak HTTP/1.1\r\nHost: l\r\nContent-Length: 3\r\n"
         b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (b"400",)),
        ("a head without end", b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 300_000, (b"431", b"")),
        ("bare LF", b"GET /healthz HTTP/1.1\nHost: l\n\n", (b"200", b"400")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
async def test_bad_http_is_refused_and_hurts_nobody(
    name: str,
    request_bytes: bytes,
    expected: tuple[bytes, ...],
    start_server: StartServer,
    ca_file: Path,
    events: list[Event],
) -> None:
    server = await start_server()
    response = await answer(server.port, ca_file, request_bytes)
    status = response.split(b" ")[1] if response else b""
    assert status in expected, (name, response[:200])
    assert b"Traceback" not in response
    assert b" 200 " in await answer(server.port, ca_file, get("/healthz"))
    assert not [event for event in events if isinstance(event, PeerFaulted)]


async def test_http2_is_not_offered_and_an_upgrade_is_ignored(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    raw = await Raw.open(server.port, ca_file, alpn="h2")
    assert raw.writer.get_extra_info("ssl_object").selected_alpn_protocol() is None
    raw.close()
    upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    response = await answer(server.port, ca_file, get("/healthz", upgrade))
    assert response.startswith(b"HTTP/1.1 200")
    assert b"101" not in response.split(b"\r\n")[0]


async def test_http10_gets_records_raw_and_no_plain_audio(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    path = "/v1/speak?source=counting&frames=3&lead=max"
    refused = await answer(server.port, ca_file, get(path, version="1.0"))
    assert b" 426 " in refused.split(b"\r\n")[0]
    assert b"old-http" in refused
    records = await answer(server.port, ca_file, get(path, RECORDS, version="1.0"))
    head, _, body = records.partition(b"\r\n\r\n")
    assert b" 200 " in head.split(b"\r\n")[0]
    assert b"chunked" not in head.lower()
    assert body[0] == 1
    assert body[-5] == 7 or b"\x07" in body[-8:]


async def test_targets_in_absolute_form_and_of_the_server_as_a_whole(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    here = f"https://localhost:{server.port}"
    tone = await answer(server.port, ca_file, get(f"{here}/v1/speak?tone=440&seconds=0.02"))
    assert tone.startswith(b"HTTP/1.1 200")
    assert b" 200 " in (await answer(server.port, ca_file, get(here + "/healthz")))[:20]
    # The target's authority counts, whatever Host says.
    evil = await answer(server.port, ca_file, get("https://evil.example/v1/speak?tone=440"))
    assert evil.startswith(b"HTTP/1.1 421")
    strange = await answer(server.port, ca_file, get("gopher://localhost/healthz"))
    assert strange.startswith(b"HTTP/1.1 404")
    options = await answer(server.port, ca_file, b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert options.startswith(b"HTTP/1.1 204")


async def test_a_client_that_asks_and_leaves_at_once_is_not_counted_for_long(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    for number in range(20):
        raw = await Raw.open(server.port, ca_file)
        raw.writer.write(get("/healthz").encode())
        if number % 2:
            await raw.writer.drain()
            raw.writer.close()
        else:
            raw.close()
    await asyncio.sleep(0.5)
    assert server._tcp.connections == 0


async def test_a_connection_carries_several_requests(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    raw = await Raw.open(server.port, ca_file)
    for _ in range(3):
        response = await raw.ask(get("/v1/speak?source=counting&frames=3&lead=max"))
        assert len(b"".join(chunks(response))) == 44 + 3 * 640
    raw.close()
    assert server._tcp.tally.connections == 1


async def test_clear_text_and_old_tls_are_turned_away(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(get("/healthz").encode())
    try:
        received = await asyncio.wait_for(reader.read(), 3)
    except ConnectionError:
        received = b""
    assert b"HTTP" not in received
    writer.transport.abort()
    context = ssl.create_default_context(cafile=ca_file)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection(
            "127.0.0.1", server.port, ssl=context, server_hostname="localhost"
        )
    assert b" 200 " in await answer(server.port, ca_file, get("/healthz"))


@pytest.mark.parametrize("moment", ["before the first byte", "in mid-stream", "at a block"])
async def test_a_client_that_leaves_stops_its_producer_at_once(
    moment: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    query = {
        "before the first byte": "first_delay=600",
        "in mid-stream": "lead=0.5",
        "at a block": "block_after=10",
    }[moment]
    for _ in range(10):
        raw = await Raw.open(server.port, ca_file)
        raw.writer.write(get(f"/v1/speak?source=counting&frames=100000&{query}").encode())
        await asyncio.sleep(0.05)
        raw.close()
    await asyncio.sleep(0.3)
    assert server.host.listeners == 0
    produced = server.host.tally.frames_produced
    await asyncio.sleep(0.3)
    assert server.host.tally.frames_produced == produced
    # They are kept for a resume; ending them runs every source's finally.
    await server.stop()
    assert COUNTERS.running == 0


async def test_connections_beyond_the_cap_are_refused_and_told_once(
    start_server: StartServer, ca_file: Path, events: list[Event]
) -> None:
    server = await start_server(max_connections=3)
    held = [await Raw.open(server.port, ca_file) for _ in range(3)]
    for _ in range(4):
        try:
            raw = await Raw.open(server.port, ca_file)
            assert await raw.ask(get("/healthz")) == b""
            raw.close()
        except (ConnectionError, ssl.SSLError):
            pass
    assert server._tcp.tally.refused >= 4
    assert len([e for e in events if isinstance(e, ConnectionRefused)]) == 1
    for raw in held:
        raw.close()
    await asyncio.sleep(0.2)
    assert server._tcp.connections == 0
    assert b" 200 " in await answer(server.port, ca_file, get("/healthz"))


async def test_handshakes_that_stand_still_count_and_end(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import quicserver.app

    monkeypatch.setattr(quicserver.app, "TcpLimits", lambda **kw: TcpLimits(**kw, handshake=0.5))
    server = await start_server(max_connections=5)
    silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(8)]
    await asyncio.sleep(0.1)
    assert server._tcp.connections == 5
    assert server._tcp.tally.refused == 3
    await asyncio.sleep(0.8)
    assert server._tcp.connections == 0
    assert b" 200 " in await answer(server.port, ca_file, get("/healthz"))
    for _, writer in silent:
        writer.close()


async def test_one_address_may_not_take_every_place(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import quicserver.app

    monkeypatch.setattr(
        quicserver.app, "TcpLimits", lambda **kw: TcpLimits(**kw, max_connections_per_address=2)
    )
    server = await start_server()
    held = [await Raw.open(server.port, ca_file) for _ in range(2)]
    with pytest.raises((ConnectionError, ssl.SSLError)):
        await Raw.open(server.port, ca_file)
    assert server._tcp.tally.refused == 1
    for raw in held:
        raw.close()


async def test_a_body_that_never_ends_is_answered_at_its_deadline(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tenuto.web.parameters

    monkeypatch.setattr(tenuto.web.parameters, "BODY_DEADLINE", 0.2)
    server = await start_server()
    head = b"POST /v1/speak HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    response = await answer(server.port, ca_file, head)
    assert response.startswith(b"HTTP/1.1 408")
    assert b"request-timeout" in response
    await asyncio.sleep(0.1)
    assert server._tcp.connections == 0


async def test_a_reader_that_never_reads_is_closed_at_the_write_deadline(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import quicserver.app

    monkeypatch.setattr(
        quicserver.app,
        "TcpLimits",
        lambda **kw: TcpLimits(**kw, write_deadline=0.5),
    )
    server = await start_server()
    raw = await Raw.open(server.port, ca_file)
    raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
    raw.writer.write(
        get("/v1/speak?source=counting&frames=100000&rate=48000&channels=2&lead=max").encode()
    )
    for _ in range(100):
        await asyncio.sleep(0.1)
        if server.host.tally.listeners_attached and not server.host.listeners:
            break
    assert server.host.listeners == 0
    # TLS asks it to say goodbye too, and waits a second for that.
    async with asyncio.timeout(3):
        while server._tcp.connections:
            await asyncio.sleep(0.05)
    raw.close()


async def test_a_peer_that_stops_answering_at_the_end_is_no_fault_of_ours(
    start_server: StartServer, ca_file: Path, events: list[Event]
) -> None:
    """It takes the last bytes and never answers close_notify."""
    server = await start_server()
    raw = await Raw.open(server.port, ca_file)
    raw.writer.write(
        get("/v1/speak?source=counting&frames=20&lead=0.2", "Connection: close\r\n").encode()
    )
    await raw.reader.read(100)
    # Below TLS nothing is read or answered any more.
    raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.sleep(2.5)
    raw.close()
    assert not [event for event in events if isinstance(event, PeerFaulted)]
    assert server.host.listeners == 0
