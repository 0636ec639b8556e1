"""How streams end: complete, failed, drained, cut; nobody takes one for another."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.process import ServerProcess
from tenuto.client import NoticeReceived, StreamCut, TransportChoice, Trust, open_stream
from tenuto.media import Frame
from tenuto.sources import read_index
from tests.conftest import StartServer
from tests.support.fetch import DOORS, fetch_soon
from tests.support.relay import delaying_relay

CUT = {"quic": {18, 56, 92, 95}, "tcp": {18}}
"""curl's exit codes for a response that was broken off: transfer closed, stream reset."""


def counting(**parameters: int | float | str) -> str:
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return f"/v1/speak?source=counting&{query}"


async def hear(
    url: str, ca: Path, transport: TransportChoice
) -> tuple[list[Frame], list[object], BaseException | None]:
    """Frames, events and how it ended."""
    frames: list[Frame] = []
    events: list[object] = []
    try:
        async with open_stream(
            url, transport=transport, trust=Trust(cafile=ca), on_event=events.append, resume=None
        ) as stream:
            async for frame in stream:
                frames.append(frame)
    except StreamCut as cut:
        return frames, events, cut
    return frames, events, None


@pytest.mark.parametrize("door", DOORS)
async def test_a_source_that_fails_ends_in_a_notice_and_a_cut(
    door: TransportChoice, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    path = counting(frames=100, fail_after=25, lead="max")
    frames, events, end = await hear(f"https://localhost:{server.port}{path}", ca_file, door)
    assert [read_index(frame.payload) for frame in frames] == list(range(25))
    assert isinstance(end, StreamCut)
    notices = [event for event in events if isinstance(event, NoticeReceived)]
    assert len(notices) == 1
    assert "source-failed" in str(notices[0])
    # Plain players see a transfer that broke off, never a 200 that silently stops.
    plain = await fetch_soon(door, server.port, path, ca=ca_file)
    assert plain.status == 200
    assert plain.result in CUT[door], plain
    assert len(plain.body) <= 44 + 25 * 640


@pytest.mark.parametrize("door", DOORS)
async def test_a_complete_stream_is_complete_for_everybody(
    door: TransportChoice, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    for count in (0, 1, 2, 5, 51):
        path = counting(frames=count, lead="max")
        frames, _, end = await hear(f"https://localhost:{server.port}{path}", ca_file, door)
        assert end is None
        assert len(frames) == count
        plain = await fetch_soon(door, server.port, path, ca=ca_file)
        assert (plain.status, plain.result, len(plain.body)) == (200, 0, 44 + 640 * count)


@pytest.mark.parametrize("door", DOORS)
async def test_many_short_streams_at_once_all_end_clean(
    door: TransportChoice, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server(attach_rate=1000.0, attach_burst=1000.0)
    url = f"https://localhost:{server.port}{counting(frames=7, lead='max')}"
    gate = asyncio.Semaphore(50)

    async def one() -> int:
        async with gate:
            frames, _, end = await hear(url, ca_file, door)
            assert end is None
            return len(frames)

    assert await asyncio.gather(*(one() for _ in range(500))) == [7] * 500
    await asyncio.sleep(0.1)
    assert server.host.listeners == 0


@pytest.mark.parametrize("door", DOORS)
async def test_sigterm_tells_where_to_resume_and_never_looks_like_an_end(
    door: TransportChoice, server_process: Callable[..., ServerProcess]
) -> None:
    server = server_process("--grace", "1")
    path = counting(frames=3000, lead=0.5)
    listening = asyncio.create_task(hear(server.url + path, server.ca, door))
    plain = asyncio.create_task(
        fetch_soon(door, server.port, counting(frames=30000, lead=1), ca=server.ca)
    )
    await asyncio.sleep(1.0)
    server.process.send_signal(signal.SIGTERM)
    frames, events, end = await asyncio.wait_for(listening, 5)
    assert isinstance(end, StreamCut)
    assert end.next_sequence == len(frames)
    assert [read_index(frame.payload) for frame in frames] == list(range(len(frames)))
    assert any("draining" in str(e) for e in events if isinstance(e, NoticeReceived))
    assert (await asyncio.wait_for(plain, 5)).result in CUT[door]
    assert await asyncio.to_thread(server.wait) == 0
    assert [line["event"] for line in server.log][-1] == "ServerStopped"
    assert server.log[-1]["seconds"] <= 2.0


@pytest.mark.parametrize("door", DOORS)
async def test_a_listener_goes_on_where_it_left_on_the_other_door(
    door: TransportChoice, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    other: TransportChoice = "tcp" if door == "quic" else "quic"
    root = f"https://localhost:{server.port}"
    trust = Trust(cafile=ca_file)
    frames: list[Frame] = []
    async with open_stream(
        root + counting(frames=200, lead=0.5), transport=door, trust=trust
    ) as stream:
        session = stream.session
        async for frame in stream:
            frames.append(frame)
            if len(frames) == 33:
                break
    rest = f"{root}/v1/sessions/{session}/audio?from=33&lead=max"
    async with open_stream(rest, transport=other, trust=trust) as stream:
        frames += [frame async for frame in stream]
    assert [read_index(frame.payload) for frame in frames] == list(range(200))


@pytest.mark.parametrize("door", DOORS)
async def test_resume_errors_are_told_apart(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    created = await fetch_soon(
        door, server.port, "/v1/sessions", ca=ca_file, method="POST", body=b'{"tone": 440}'
    )
    assert created.status == 201
    audio = created.json["audio"]

    async def ask(query: str) -> tuple[int, str]:
        answer = await fetch_soon(door, server.port, audio + query, ca=ca_file)
        return answer.status, answer.json["code"]

    assert await ask("?from=100000") == (416, "far-ahead")
    assert await ask("?epoch=7") == (416, "far-ahead")
    whole = await fetch_soon(door, server.port, audio, ca=ca_file)
    assert (whole.status, len(whole.body)) == (200, 44 + 32000)
    control = audio.replace("/audio", "/control")
    closed = await fetch_soon(
        door, server.port, control, ca=ca_file, method="POST", body=b'{"command": "close"}'
    )
    assert closed.json["state"] == "expired"
    answer = await fetch_soon(door, server.port, audio, ca=ca_file)
    assert (answer.status, answer.json["code"]) == (410, "expired-session")
    assert answer.json["last"] == 49


@pytest.mark.parametrize("door", DOORS)
async def test_head_answers_as_get_would(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    body = b'{"tone": 440, "seconds": 20}'
    created = await fetch_soon(
        door, server.port, "/v1/sessions", ca=ca_file, method="POST", body=body
    )
    audio = created.json["audio"]
    for query in ("?from=999999", "?lead=99", "?epoch=3", "?nonsense=1", ""):
        head = await fetch_soon(door, server.port, audio + query, ca=ca_file, method="HEAD")
        if query:
            get = await fetch_soon(door, server.port, audio + query, ca=ca_file)
            assert head.status == get.status != 200, query
        else:
            assert head.status == 200
    assert server.host.listeners == 0


async def test_a_session_that_is_closed_ends_its_streams_within_a_round_trip(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    url = f"https://localhost:{server.port}{counting(frames=3000, lead=0.5)}"
    hearing = asyncio.create_task(hear(url, ca_file, "quic"))
    async with asyncio.timeout(5):
        while not server.host.tally.frames_sent:  # nobody tells
            await asyncio.sleep(0.01)
    (entry,) = server.host._entries.values()
    began = asyncio.get_running_loop().time()
    server.host.expire(entry.session)
    _, events, end = await hearing
    took = asyncio.get_running_loop().time() - began
    assert isinstance(end, StreamCut)
    assert "expired-session" in str(events)
    # RESET_STREAM follows the NOTICE's acknowledgement, not its deadline of a second.
    assert took < 0.8


@pytest.mark.parametrize("door", DOORS)
async def test_sequences_cross_the_wrap_unseen(
    door: TransportChoice, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server(first_sequence=65536 - 50)
    url = f"https://localhost:{server.port}{counting(frames=150, lead='max')}"
    frames, _, end = await hear(url, ca_file, door)
    assert end is None
    assert [frame.sequence for frame in frames] == list(range(65536 - 50, 65536 + 100))
    assert [read_index(frame.payload) for frame in frames] == list(range(150))


async def test_a_stop_waits_for_what_was_sent_but_not_yet_acknowledged(
    start_server: StartServer, ca_file: Path
) -> None:
    """A stream that is complete here is not yet complete there."""
    server = await start_server(grace=2.0)
    port, relay = await delaying_relay(server.port, 0.1)
    hearing = asyncio.create_task(
        hear(f"https://localhost:{port}{counting(frames=40, lead='max')}", ca_file, "quic")
    )
    async with asyncio.timeout(10):
        # The last frame is sent before it is known to be the last: END may be a moment behind.
        while server.host.tally.frames_sent < 40 or server.host.listeners:  # nobody tells
            await asyncio.sleep(0.005)
    await server.stop()
    frames, _, end = await hearing
    relay.close()
    assert end is None
    assert len(frames) == 40
