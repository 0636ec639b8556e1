"""A loop that is busy, a kernel that drops, peers that allow next to nothing."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from aioquic.h3.connection import H3Connection

from bench.load import Load, generate
from bench.process import ServerProcess
from bench.rude import NeverReads, StalledTcp
from fallback import TcpLimits
from quicserver.kerneldrops import kernel_drops
from quicserver.limits import DoorLimits
from quicserver.listener import bind_udp
from quicserver.sockets import bind_all
from tenuto.media import Frame
from tenuto.telemetry.events import BufferCutShort, Event
from tenuto.wire import RecordDecoder
from tests.conftest import StartServer
from tests.quicserver.test_hostile import RawClient
from tests.support.fetch import DOORS, fetch_soon

linux = pytest.mark.skipif(sys.platform != "linux", reason="as Linux counts")

HEALTHZ = [
    (b":method", b"GET"),
    (b":scheme", b"https"),
    (b":authority", b"localhost"),
    (b":path", b"/healthz"),
]


@linux
def test_datagrams_that_nobody_reads_are_counted() -> None:
    bound = bind_udp("127.0.0.1", 0, 4096)
    other = bind_udp("127.0.0.1", 0, 4096)
    with bound, other, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gun:
        assert kernel_drops([bound, other]) == 0
        for _ in range(100):
            gun.sendto(bytes(1200), bound.getsockname())
        taken = 0
        while True:
            try:
                bound.recv(2000)
            except BlockingIOError:
                break
            taken += 1
        assert kernel_drops([bound]) == 100 - taken > 0
        assert kernel_drops([other]) == 0


@linux
async def test_a_flood_while_the_loop_is_busy_shows_in_the_metrics(
    start_server: StartServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import quicserver.app

    monkeypatch.setattr(
        quicserver.app, "DoorLimits", lambda **kw: DoorLimits(**{**kw, "socket_buffer": 4096})
    )
    server = await start_server()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gun:
        for _ in range(500):  # in the loop's own thread: it cannot read meanwhile
            gun.sendto(bytes(1200), ("127.0.0.1", server.port))
    answer = await fetch_soon("tcp", server.port, "/metrics", ca=ca_file)
    values = dict(line.split(" ") for line in answer.body.decode().splitlines() if line[0] != "#")
    assert int(float(values["tenuto_quic_kernel_drops_total"])) > 0


async def test_a_loop_that_stands_still_for_50_ms_loses_nothing(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    load = Load(
        transport="quic",
        port=server.port,
        ca=str(ca_file),
        server=1,
        path="/v1/speak?source=counting&frames=100000&lead=0.2",
        group=1,
        listeners=20,
        spread=0.5,
        settle=0.5,
        steady=3.0,
    )
    working = asyncio.create_task(asyncio.to_thread(generate, load))
    while not working.done():
        await asyncio.wait({working}, timeout=1.0)
        time.sleep(0.05)  # noqa: ASYNC251  # on purpose
    heard = await working
    assert (heard.missing, heard.silent, heard.duplicates) == (0, 0, 0)
    assert heard.frames > 20 * 100
    assert server._quic is not None
    assert server._quic.kernel_drops == 0


@linux
def test_a_buffer_cut_short_is_told_with_advice() -> None:
    events: list[Event] = []
    wish = 1 << 30
    bound = bind_all(
        ("127.0.0.1",),
        0,
        udp=True,
        door=DoorLimits(socket_buffer=wish),
        tcp=TcpLimits(),
        on_event=events.append,
    )
    bound.close()
    (event,) = events
    assert isinstance(event, BufferCutShort)
    assert (event.address, event.asked) == ("127.0.0.1", wish)
    assert 0 < event.granted < wish // 2
    assert event.advice == f"sysctl -w net.core.rmem_max={wish} net.core.wmem_max={wish}"


@pytest.mark.parametrize("streams", [0, 1, 3])
async def test_a_peer_that_allows_few_streams_is_answered(
    streams: int, start_server: StartServer, ca_file: Path
) -> None:
    """Ours for control and QPACK wait for the credit; requests need none of them."""
    server = await start_server()
    client = RawClient(server.port, ca_file)
    client.quic._local_max_streams_uni.value = streams
    client.quic._local_max_streams_bidi.value = streams
    await client.connect()
    http = H3Connection(client.quic)
    for stream_id in (0, 4):
        http.send_headers(stream_id, HEALTHZ, end_stream=True)
    await client.run(0.7)
    client.close()
    assert all(b'"status":"ok"' in client.data[stream_id] for stream_id in (0, 4))


@pytest.mark.parametrize(("stream", "connection"), [(0, 65536), (65536, 0)])
async def test_a_listener_without_credit_costs_next_to_nothing_and_others_play(
    stream: int, connection: int, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    path = "/v1/speak?source=counting&frames=100000&rate=48000&channels=2&lead=max"
    rude = [
        NeverReads(server.port, ca_file, path, stream_window=stream, connection_window=connection)
        for _ in range(5)
    ]
    running = [asyncio.create_task(each.run(2.5)) for each in rude]
    await asyncio.sleep(1.0)
    whole = await fetch_soon(
        "quic",
        server.port,
        "/v1/speak?source=counting&frames=50",
        ca=ca_file,
        headers=("Accept: application/vnd.tenuto.records",),
    )
    assert server._quic is not None
    assert server._quic.held <= 5 * 20 * 1024
    await asyncio.gather(*running)
    assert whole.result == 0


@pytest.mark.parametrize("door", DOORS)
async def test_ten_that_stand_still_and_one_that_plays_share_a_session(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    created = await fetch_soon(
        "tcp",
        server.port,
        "/v1/sessions?source=counting&frames=250&rate=48000&channels=2",
        ca=ca_file,
        method="POST",
        body=b"",
    )
    path = f"/v1/sessions/{created.json['session']}/audio"
    stalled: list[NeverReads | StalledTcp] = [
        *(NeverReads(server.port, ca_file, path, stream_window=4096) for _ in range(5)),
        *(StalledTcp(server.port, ca_file, path) for _ in range(5)),
    ]
    for each in stalled:
        each.ask()
    running = [asyncio.create_task(each.run(7.0)) for each in stalled]
    await asyncio.sleep(0.5)
    whole = await fetch_soon(
        door, server.port, path, ca=ca_file, headers=("Accept: application/vnd.tenuto.records",)
    )
    records = RecordDecoder().feed(whole.body)
    heard = [record.sequence for record in records if isinstance(record, Frame)]
    assert whole.result == 0
    assert heard == list(range(250))
    for task in running:
        task.cancel()
    await asyncio.wait(running)


@linux
def test_little_hides_below_the_session_on_uvloop_too(
    server_process: Callable[..., ServerProcess], ca_file: Path
) -> None:
    pytest.importorskip("uvloop")
    server = server_process()
    path = "/v1/speak?source=counting&frames=100000&rate=1500&lead=max"

    async def stand_still() -> float:
        client = StalledTcp(server.port, server.ca, path)
        client.ask()
        running = asyncio.create_task(client.run(5.0))
        await asyncio.sleep(3.0)
        sent = await asyncio.to_thread(server.metric, "host_frames_sent_total")
        hidden = sent - client.received / (60 + 11)
        running.cancel()
        await asyncio.wait({running})
        return hidden * 0.020

    assert 0.5 < asyncio.run(stand_still()) < 2.0


async def test_a_reader_of_one_kilobyte_a_second_goes_on_and_holds_nobody_up(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    path = "/v1/speak?source=counting&frames=100000&rate=1500&lead=max"
    slow: list[NeverReads | StalledTcp] = [
        NeverReads(server.port, ca_file, path, pace=1000, stream_window=4096),
        StalledTcp(server.port, ca_file, path, pace=1000),
    ]
    for each in slow:
        each.ask()
    running = [asyncio.create_task(each.run(4.0)) for each in slow]
    await asyncio.sleep(3.5)
    assert server.host.listeners == 2
    before = time.monotonic()
    assert (await fetch_soon("quic", server.port, "/healthz", ca=ca_file)).status == 200
    assert time.monotonic() - before < 1.0
    await asyncio.gather(*running)
