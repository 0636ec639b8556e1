"""Which transport is taken, and what is said when there is none."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aioquic.asyncio.server import serve
from aioquic.quic.configuration import QuicConfiguration

from tenuto.client import (
    Address,
    ConnectError,
    Deadlines,
    Event,
    FailureKind,
    PathStore,
    StreamCut,
    Transport,
    TransportChosen,
    TransportFailed,
    Trust,
    open_stream,
)
from tenuto.errors import OperatorError, RequestError
from tenuto.policy import CoolDown
from tests.client.authority import Authority, Pair
from tests.client.peer import RECORDS, Asked, Out, problem, sentence, serving, whole

DEADLINES = Deadlines(quic=0.5, quic_left=0.5, tcp=0.5, response=0.5)

IPV6 = socket.has_ipv6


@contextmanager
def black_hole(kind: socket.SocketKind, port: int = 0) -> Iterator[int]:
    """A port of 127.0.0.1 where packets go in and nothing comes out."""
    with closing(socket.socket(socket.AF_INET, kind)) as bound:
        bound.bind(("127.0.0.1", port))
        yield bound.getsockname()[1]


@contextmanager
def full_backlog() -> Iterator[int]:
    """A port that answers no SYN any more; elsewhere than on Linux it may refuse."""
    with ExitStack() as stack:
        server = stack.enter_context(closing(socket.socket()))
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(3):
            client = stack.enter_context(closing(socket.socket()))
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield server.getsockname()[1]


def address(host: str, port: int) -> Address:
    if ":" in host:
        return Address(socket.AF_INET6, (host, port, 0, 0))
    return Address(socket.AF_INET, (host, port))


def failures(error: ConnectError) -> dict[str, FailureKind]:
    return {failure.transport: failure.kind for failure in error.failures}


async def collect(url: str, trust: Trust, **options: object) -> list[Event]:
    events: list[Event] = []
    async with open_stream(url, trust=trust, on_event=events.append, **options) as stream:  # type: ignore[arg-type]
        count = len([frame async for frame in stream])
    assert count == 3
    return events


def elapsed(start: float) -> float:
    return asyncio.get_running_loop().time() - start


async def test_quic_is_first(pair: Pair, trust: Trust) -> None:
    async with serving(pair, whole(sentence(3))) as peer:
        events = await collect(peer.url(), trust)
    assert [way for way, _ in peer.asked] == ["quic"]
    assert not [e for e in events if isinstance(e, TransportFailed)]


async def test_icmp_refused_moves_on_at_once(pair: Pair, trust: Trust) -> None:
    start = asyncio.get_running_loop().time()
    async with serving(pair, whole(sentence(3)), transports=("tcp",)) as peer:
        failed, chosen, *_ = await collect(peer.url(), trust)
    assert elapsed(start) < 0.4
    assert isinstance(failed, TransportFailed)
    assert failed.failure.kind is FailureKind.REFUSED
    assert isinstance(chosen, TransportChosen)
    assert chosen.transport == "tcp"


async def test_udp_that_vanishes_costs_a_quarter_of_a_second(pair: Pair, trust: Trust) -> None:
    async with serving(pair, whole(sentence(3)), transports=("tcp",)) as peer:
        with black_hole(socket.SOCK_DGRAM, peer.port):
            start = asyncio.get_running_loop().time()
            failed, chosen, *_ = await collect(peer.url(), trust, deadlines=DEADLINES)
            assert 0.2 < elapsed(start) < 0.5
    assert isinstance(failed, TransportFailed)
    assert failed.failure.kind is FailureKind.TIMEOUT
    assert isinstance(chosen, TransportChosen)
    assert chosen.transport == "tcp"


async def test_a_server_that_takes_quic_and_never_answers(pair: Pair, trust: Trust) -> None:
    async def script(asked: Asked, out: Out) -> None:
        if len(peer.asked) > 1:
            await whole(sentence(3))(asked, out)

    async with serving(pair, script) as peer:
        failed, *_ = await collect(peer.url(), trust, deadlines=DEADLINES)
    assert isinstance(failed, TransportFailed)
    assert "it had brought nothing" in failed.failure.reason
    assert [way for way, _ in peer.asked] == ["quic", "tcp"]


@pytest.mark.skipif(not IPV6, reason="this machine has no IPv6")
@pytest.mark.parametrize("transport", ["quic", "tcp"])
async def test_all_addresses_are_tried(pair: Pair, trust: Trust, transport: Transport) -> None:
    """::1 comes first, the server is on 127.0.0.1 only."""
    async with serving(pair, whole(sentence(3))) as peer:
        both = [address("::1", peer.port), address("127.0.0.1", peer.port)]
        start = asyncio.get_running_loop().time()
        events = await collect(peer.url(), trust, transport=transport, addresses=both)
        assert elapsed(start) < 1.0
    (chosen,) = (e for e in events if isinstance(e, TransportChosen))
    assert chosen.peer == f"127.0.0.1:{peer.port}"


@pytest.mark.parametrize("transport", ["quic", "tcp"])
async def test_an_address_that_is_silent_costs_a_quarter_second(
    pair: Pair, trust: Trust, transport: Transport
) -> None:
    hole = black_hole(socket.SOCK_DGRAM) if transport == "quic" else full_backlog()
    async with serving(pair, whole(sentence(3))) as peer:
        with hole as silent:
            both = [address("127.0.0.1", silent), address("127.0.0.1", peer.port)]
            start = asyncio.get_running_loop().time()
            await collect(peer.url(), trust, transport=transport, addresses=both)
            assert 0.2 < elapsed(start) < 0.8


@pytest.mark.skipif(not IPV6, reason="this machine has no IPv6")
async def test_an_ipv6_literal(pair: Pair, trust: Trust) -> None:
    async with serving(pair, whole(sentence(3)), host="::1") as peer:
        await collect(peer.url("[::1]"), trust)
        await collect(peer.url("[::1]"), trust, transport="tcp")
    assert [way for way, _ in peer.asked] == ["quic", "tcp"]
    assert peer.asked[1][1].headers["host"] == f"[::1]:{peer.port}"


async def test_nobody_there(trust: Trust) -> None:
    with black_hole(socket.SOCK_STREAM) as port:  # bound, so that nobody else can be there
        start = asyncio.get_running_loop().time()
        with pytest.raises(ConnectError, match="is the server running") as caught:
            await collect(f"https://127.0.0.1:{port}/", trust)
    assert elapsed(start) < 0.5
    assert failures(caught.value) == {"quic": FailureKind.REFUSED, "tcp": FailureKind.REFUSED}
    assert "QUIC: 127.0.0.1" in caught.value.message
    assert "TCP: 127.0.0.1" in caught.value.message


async def test_udp_blocked_with_quic_alone(trust: Trust) -> None:
    with black_hole(socket.SOCK_DGRAM) as port, pytest.raises(ConnectError) as caught:
        url = f"https://127.0.0.1:{port}/"
        await collect(url, trust, transport="quic", deadlines=DEADLINES)
    assert failures(caught.value) == {"quic": FailureKind.TIMEOUT}
    assert f"UDP port {port} blocked" in caught.value.remedy
    assert "--transport tcp" in caught.value.remedy


async def test_a_tcp_server_that_never_shakes_hands(trust: Trust) -> None:
    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silence, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectError) as caught:
            await collect(f"https://127.0.0.1:{port}/", trust, deadlines=DEADLINES)
    assert failures(caught.value) == {"quic": FailureKind.REFUSED, "tcp": FailureKind.TIMEOUT}


async def test_a_server_without_tls(trust: Trust) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectError, match="TLS 1.3") as caught:
            await collect(f"https://127.0.0.1:{port}/", trust, transport="tcp")
    assert failures(caught.value) == {"tcp": FailureKind.PROTOCOL}


@pytest.mark.parametrize("transport", ["quic", "tcp", "auto"])
@pytest.mark.parametrize("wrong", ["unknown CA", "wrong name", "expired"])
async def test_a_bad_certificate_is_no_unreachable_server(
    authority: Authority, trust: Trust, transport: Transport, wrong: str
) -> None:
    days = -1 if wrong == "expired" else 1
    name = "elsewhere.test" if wrong == "wrong name" else "localhost"
    pair = authority.issue("bad", name, days=days)
    judge = Trust() if wrong == "unknown CA" else trust
    async with serving(pair, whole(sentence(3))) as peer:
        start = asyncio.get_running_loop().time()
        with pytest.raises(ConnectError, match="is not trusted") as caught:
            await collect(peer.url(), judge, transport=transport)
        assert elapsed(start) < 1.5
        assert set(failures(caught.value).values()) == {FailureKind.UNTRUSTED}
        assert "--ca certs/dev/ca.pem" in caught.value.remedy
        await collect(peer.url(), Trust(insecure=True), transport=transport)
    assert len(peer.asked) == 1


async def test_a_ca_that_cannot_be_read(pair: Pair, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("hello")
    async with serving(pair, whole(sentence(3))) as peer:
        for cafile in (empty, tmp_path / "absent.pem"):
            for transport in ("quic", "tcp"):
                with pytest.raises(OperatorError, match=cafile.name):
                    await collect(peer.url(), Trust(cafile=cafile), transport=transport)


async def test_a_refusal_over_quic_is_final(pair: Pair, trust: Trust) -> None:
    async with serving(pair, problem(400, code="bad-text", detail="no text")) as peer:
        with pytest.raises(RequestError, match="no text"):
            await collect(peer.url(), trust)
    assert [way for way, _ in peer.asked] == ["quic"]


async def test_a_name_without_address(trust: Trust) -> None:
    with pytest.raises(ConnectError, match=r"nowhere\.invalid") as caught:
        await collect("https://nowhere.invalid/", trust)
    assert failures(caught.value) == {"quic": FailureKind.NAME}


async def test_a_listener_to_silence_pings_once_a_second(pair: Pair, trust: Trust) -> None:
    async def script(asked: Asked, out: Out) -> None:
        await out.head()
        await out.send(sentence(3)[:700])
        await asyncio.sleep(3600)

    async with (
        serving(pair, script) as peer,
        open_stream(peer.url(), trust=trust, transport="quic") as stream,
    ):
        await anext(stream)
        await asyncio.sleep(0.5)
        before = peer.datagrams
        await asyncio.sleep(2.2)
        assert before + 2 <= peer.datagrams <= before + 8


@pytest.mark.parametrize("farewell", [True, False])
async def test_a_server_that_dies_in_mid_stream_is_noticed(
    pair: Pair, trust: Trust, farewell: bool
) -> None:
    """Without CONNECTION_CLOSE the next PING meets ICMP refused; the idle time-out is 12 s."""

    async def script(asked: Asked, out: Out) -> None:
        await out.head()
        await out.send(sentence(3)[:700])
        await asyncio.sleep(3600)

    async with AsyncExitStack() as stack:
        async with serving(pair, script) as peer:
            opening = open_stream(peer.url(), trust=trust, transport="quic")
            stream = await stack.enter_async_context(opening)
            await anext(stream)
            if not farewell:
                peer.vanish()
        start = asyncio.get_running_loop().time()
        with pytest.raises(StreamCut):
            await anext(stream)
        assert elapsed(start) < 2.0


async def answer(data: bytes, pair: Pair) -> asyncio.Server:
    """A TLS server that says these bytes to whoever asks anything."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    return await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", FailureKind.CLOSED),
        (b"HTTP/1.1 200 OK\r\nContent-", FailureKind.CLOSED),
        (b"SSH-2.0-OpenSSH\r\n\r\n", FailureKind.PROTOCOL),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", FailureKind.PROTOCOL),
    ],
)
async def test_answers_that_are_none(
    pair: Pair, trust: Trust, data: bytes, kind: FailureKind
) -> None:
    async with await answer(data, pair) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectError) as caught:
            await collect(f"https://localhost:{port}/", trust)
    assert failures(caught.value) == {"quic": FailureKind.REFUSED, "tcp": kind}


async def test_an_interim_response_is_passed_over(pair: Pair, trust: Trust) -> None:
    body = sentence(3)
    head = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n"
    async with await answer(head % RECORDS.encode() + body, pair) as server:
        port = server.sockets[0].getsockname()[1]
        await collect(f"https://localhost:{port}/", trust, transport="tcp")


async def test_quic_without_http3(pair: Pair, trust: Trust) -> None:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["doq"])
    configuration.load_cert_chain(pair.cert, pair.key)
    server = None
    while server is None:
        with black_hole(socket.SOCK_STREAM) as port:
            with suppress(OSError):  # Somebody has the UDP port of that number.
                server = await serve("127.0.0.1", port, configuration=configuration)
            if server is None:
                continue
            try:
                with pytest.raises(ConnectError, match="not HTTP/3") as caught:
                    await collect(f"https://127.0.0.1:{port}/", trust)
            finally:
                server.close()
    assert failures(caught.value) == {"quic": FailureKind.PROTOCOL, "tcp": FailureKind.REFUSED}


class WithoutReaders(asyncio.SelectorEventLoop):
    """Like Windows' default loop: sockets yes, readers no."""

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> Any:  # type: ignore[override]
        raise NotImplementedError


def test_a_loop_that_cannot_watch_sockets(pair: Pair, trust: Trust) -> None:
    async def listen() -> None:
        async with serving(pair, whole(sentence(3))) as peer:
            await collect(peer.url(), trust, transport="quic")
        with black_hole(socket.SOCK_STREAM) as port, pytest.raises(ConnectError) as caught:
            await collect(f"https://127.0.0.1:{port}/", trust, transport="quic")
        assert failures(caught.value) == {"quic": FailureKind.REFUSED}

    with asyncio.Runner(loop_factory=WithoutReaders) as runner:
        runner.run(listen())


@pytest.mark.parametrize("transport", ["quic", "tcp"])
async def test_leaving_early_and_cancelling_leave_nothing_behind(
    pair: Pair, trust: Trust, transport: Transport
) -> None:
    async def script(asked: Asked, out: Out) -> None:
        await out.head()
        await out.send(sentence(3)[:1000])
        await asyncio.sleep(3600)

    async def listen() -> None:
        async with open_stream(peer.url(), trust=trust, transport=transport) as stream:
            async for _ in stream:
                pass

    async with serving(pair, script) as peer:
        async with open_stream(peer.url(), trust=trust, transport=transport) as stream:
            await anext(stream)
        task = asyncio.create_task(listen())
        while len(peer.asked) < 2:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


class Changes:
    """Tells of another network when the test says so."""

    told: Callable[[], None]
    watching = 0

    def __init__(self, on_change: Callable[[], None], hosts: object = ()) -> None:
        self._on_change = on_change

    def start(self) -> None:
        Changes.told = self._on_change
        Changes.watching += 1

    def close(self) -> None:
        Changes.watching -= 1


async def test_another_network_meanwhile_is_dialed_at_once(
    pair: Pair, trust: Trust, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on its way belongs to the network that the device has left."""
    monkeypatch.setattr("tenuto.client.opening.NetworkChanges", Changes)
    keys: list[str] = []

    async def script(asked: Asked, out: Out) -> None:
        keys.append(asked.headers["idempotency-key"])
        if len(keys) < 4:
            Changes.told()
            await asyncio.sleep(60)
        await whole(sentence(2))(asked, out)

    async with (
        serving(pair, script) as peer,
        asyncio.timeout(10),
        open_stream(peer.url(), transport=transport, trust=trust) as stream,
    ):
        assert Changes.watching == 1
        assert len([frame async for frame in stream]) == 2
    assert len(keys) == 4
    assert len(set(keys)) == 1
    assert Changes.watching == 0


async def test_another_network_meanwhile_is_looked_up_in_the_memory(
    pair: Pair, trust: Trust, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenuto.client.opening.NetworkChanges", Changes)
    networks, asked = ["home"], asyncio.Event()
    memory = PathStore(identify=lambda _: networks[0], clock=lambda: 1000.0)

    async def script(question: Asked, out: Out) -> None:
        if not asked.is_set():
            asked.set()
            await asyncio.sleep(60)
        await whole(sentence(2))(question, out)

    async def leave() -> None:
        await asked.wait()
        networks[0] = "café"
        Changes.told()

    async with serving(pair, script) as peer, asyncio.timeout(10):
        memory.put("home", f"https://localhost:{peer.port}", CoolDown(1, 1100.0))
        leaving = asyncio.create_task(leave())
        async with open_stream(peer.url(), trust=trust, memory=memory) as stream:
            assert stream.transport == "quic"
        await leaving
        assert [transport for transport, _ in peer.asked] == ["tcp", "quic"]


async def test_the_network_is_watched_no_longer_than_it_opens(
    pair: Pair, trust: Trust, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenuto.client.opening.NetworkChanges", Changes)
    async with serving(pair, problem(400, code="bad-request", detail="x")) as peer:
        with pytest.raises(RequestError):
            async with open_stream(peer.url(), trust=trust):
                pass
    assert Changes.watching == 0
