"""`chunk=`: how many frames travel together, on both doors."""

from __future__ import annotations

import asyncio
import ssl
from itertools import pairwise
from pathlib import Path

import pytest

from bench.listening import listen
from tenuto.client import Transport, Trust, open_stream
from tenuto.media import Frame
from tenuto.wire import Format, RecordDecoder
from tests.conftest import StartServer
from tests.support.fetch import DOORS, fetch_soon

RECORDS = ("Accept: application/vnd.tenuto.records; v=1",)


async def tcp_chunks(port: int, ca: Path, path: str) -> list[bytes]:
    """The HTTP chunks of one answer, each as it was framed."""
    context = ssl.create_default_context(cafile=ca)
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname="localhost"
    )
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{RECORDS[0]}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head
    found = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        found.append((await reader.readexactly(size + 2))[:-2])
    writer.transport.abort()
    return found


def frames(chunk: bytes, decoder: RecordDecoder) -> int:
    return sum(isinstance(record, Frame) for record in decoder.feed(chunk))


def announced(body: bytes) -> int:
    """`chunk_frames` of the FORMAT that begins a stream of records."""
    first = RecordDecoder().feed(body[:64])[0]
    assert isinstance(first, Format)
    return first.chunk_frames


@pytest.mark.parametrize("chunk", [1, 3, 5])
@pytest.mark.parametrize("lead", ["0.2", "max"])
async def test_over_tcp_a_chunk_holds_as_many_frames_as_were_asked_for(
    chunk: int, lead: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    path = f"/v1/speak?source=counting&frames=50&lead={lead}&chunk={chunk}"
    found = await tcp_chunks(server.port, ca_file, path)
    assert announced(found[0]) == chunk
    decoder = RecordDecoder()
    sizes = [size for each in found if (size := frames(each, decoder))]
    assert sum(sizes) == 50
    first, *rest, last = sizes
    assert first <= min(chunk, 2)
    assert last <= chunk
    assert set(rest) == {chunk}


async def test_over_quic_frames_arrive_in_groups_of_as_many_as_were_asked_for(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    params = {"source": "counting", "frames": "1000", "lead": "0.2", "chunk": "5"}
    heard = await listen(server.port, ca_file, params, transport="quic", seconds=2.0)
    assert heard.complete
    # The first of them builds the lead, and the last may have been cut off.
    times = heard.times[25:]
    ends = [n for n, (before, after) in enumerate(pairwise(times)) if after - before > 0.03]
    assert len(ends) >= 5
    # A loop that was late sees two groups as one, never a part of one.
    assert {(b - a) % 5 for a, b in pairwise(ends)} == {0}, times


async def test_over_quic_frames_come_one_by_one_unless_told_otherwise(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    params = {"source": "counting", "frames": "1000", "lead": "0.2"}
    heard = await listen(server.port, ca_file, params, transport="quic", seconds=1.5)
    gaps = [after - before for before, after in pairwise(heard.times[20:])]
    # Most, for a late loop brings several together.
    assert sum(gap > 0.01 for gap in gaps) > len(gaps) / 2


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {"quic": 1, "tcp": 5}),
        ("&chunk=7", {"quic": 7, "tcp": 7}),
        ("&chunk=10", {"quic": 10, "tcp": 10}),
        # 3,845 bytes a frame: three are all that 12,288 hold.
        ("&chunk=10&rate=48000&channels=2", {"quic": 3, "tcp": 3}),
        # No more than the lead ever becomes due.
        ("&chunk=10&lead=0.1", {"quic": 5, "tcp": 5}),
    ],
)
async def test_format_announces_what_really_travels_together(
    door: str, query: str, expected: dict[str, int], start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    path = f"/v1/speak?source=counting&frames=23{query}"
    answer = await fetch_soon(door, server.port, path, ca=ca_file, headers=RECORDS)
    assert (answer.status, answer.result) == (200, 0)
    assert announced(answer.body) == expected[door]
    assert frames(answer.body, RecordDecoder()) == 23


@pytest.mark.parametrize("door", DOORS)
async def test_a_listener_of_a_session_chooses_for_itself(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    created = await fetch_soon(
        door, server.port, "/v1/sessions?source=counting&frames=20", ca=ca_file, method="POST"
    )
    for chunk in (2, 9):
        path = f"{created.json['audio']}?from=0&chunk={chunk}"
        answer = await fetch_soon(door, server.port, path, ca=ca_file, headers=RECORDS)
        assert announced(answer.body) == chunk
        assert frames(answer.body, RecordDecoder()) == 20


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("value", ["0", "11", "-1", "1.5", "", "many", "9" * 400, "%D9%A3", "5%20"])
async def test_other_chunks_are_refused_by_name(
    door: str, value: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    path = f"/v1/speak?source=counting&frames=5&chunk={value}"
    answer = await fetch_soon(door, server.port, path, ca=ca_file)
    assert answer.status == 400
    assert answer.json["code"] == "bad-request"
    assert answer.json["detail"].startswith("chunk = ")
    assert answer.json["remedy"] == "give 1 to 10 frames"
    assert server.host.tally.sessions_opened == 0


@pytest.mark.parametrize("transport", ["quic", "tcp"])
@pytest.mark.parametrize("chunk", [None, 5, 10])
@pytest.mark.parametrize("lead", ["max", 2.0])
async def test_a_source_that_pauses_keeps_no_frame_back(
    transport: Transport,
    chunk: int | None,
    lead: float | str,
    start_server: StartServer,
    ca_file: Path,
) -> None:
    """The end of a word is not held for the next one."""
    server = await start_server()
    params: dict[str, str | int | float] = {"source": "counting", "block_after": 13, "lead": lead}
    if chunk is not None:
        params["chunk"] = chunk
    url = f"https://localhost:{server.port}/v1/speak"
    trust = Trust(cafile=ca_file)
    async with (
        asyncio.timeout(2.0),
        open_stream(url, transport=transport, params=params, trust=trust) as stream,
    ):
        assert [(await anext(stream)).sequence for _ in range(13)] == list(range(13))
