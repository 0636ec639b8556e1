"""Going on in the source or the text where the session, or its window, is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from bench.process import ServerProcess
from tenuto.client import Interrupted, Restarted, Resumed, RetryPolicy, Trust, open_stream
from tenuto.sources.counting import numbered_run
from tenuto.tls import DevCertificates
from tenuto.wire import Mark, RecordDecoder
from tests.conftest import StartServer
from tests.support.fetch import DOORS, Answer, fetch_soon

POLICY = RetryPolicy(base=0.05, cap=0.5, patience=20)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    DevCertificates(tmp_path).ensure(datetime.now(UTC))
    return tmp_path


@pytest.fixture
def port() -> Iterator[int]:
    """Free for both, and then left to the server."""
    while True:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            number: int = tcp.getsockname()[1]
            try:
                udp.bind(("127.0.0.1", number))
            except OSError:
                continue
        yield number
        return


@pytest.mark.parametrize("transport", ["quic", "tcp"])
@pytest.mark.parametrize("frames", [200])
async def test_after_kill_9_a_source_goes_on_exactly_where_it_was(
    folder: Path, port: int, transport: Any, frames: int
) -> None:
    servers = [await asyncio.to_thread(ServerProcess, folder, "--port", str(port))]
    events: list[Any] = []
    sequences, heard = [], bytearray()
    try:
        async with open_stream(
            f"https://localhost:{port}/v1/speak",
            params={"source": "counting", "frames": frames, "lead": 0.5},
            transport=transport,
            trust=Trust(cafile=servers[0].ca),
            resume=POLICY,
            on_event=events.append,
        ) as stream:
            async for frame in stream:
                sequences.append(frame.sequence)
                heard += frame.payload
                if frame.sequence == 60:
                    os.kill(servers[0].process.pid, signal.SIGKILL)
                    servers[0].wait()
                    servers.append(
                        await asyncio.to_thread(ServerProcess, folder, "--port", str(port))
                    )
    finally:
        for server in servers:
            server.stop()
    assert sequences == list(range(frames))
    assert bytes(heard) == numbered_run(0, len(heard), 640)
    (restarted,) = [event for event in events if isinstance(event, Restarted)]
    assert restarted.skip == restarted.sequence >= 61
    assert [type(e) for e in events if isinstance(e, Interrupted | Resumed)] == [
        Interrupted, Resumed
    ]  # fmt: skip
    (resumed,) = [event for event in events if isinstance(event, Resumed)]
    assert resumed.transport == transport


async def test_after_kill_9_the_clause_is_spoken_again(folder: Path, port: int) -> None:
    pytest.importorskip("espeakng_loader")
    servers = [await asyncio.to_thread(ServerProcess, folder, "--port", str(port))]
    text = "One is the first of all. Two is the next of them. Three comes behind. Four ends it."
    events: list[Any] = []
    sequences = []
    try:
        async with open_stream(
            f"https://localhost:{port}/v1/speak",
            params={"text": text, "lead": 0.5},
            transport="tcp",
            trust=Trust(cafile=servers[0].ca),
            resume=POLICY,
            on_event=events.append,
        ) as stream:
            async for frame in stream:
                sequences.append(frame.sequence)
                if frame.sequence == 120:
                    os.kill(servers[0].process.pid, signal.SIGKILL)
                    servers[0].wait()
                    servers.append(
                        await asyncio.to_thread(ServerProcess, folder, "--port", str(port))
                    )
    finally:
        for server in servers:
            server.stop()
    assert sequences == list(range(len(sequences)))
    (restarted,) = [event for event in events if isinstance(event, Restarted)]
    assert restarted.text_offset
    assert 0 < restarted.text_offset < len(text)
    assert stream.gaps == 0


@pytest.mark.parametrize("door", DOORS)
async def test_who_comes_too_late_has_the_rest_spoken_from_where_it_was(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    pytest.importorskip("espeakng_loader")
    server = await start_server()
    text = " ".join(f"Number {number} is said here, and then comes another." for number in range(9))

    async def ask(path: str, **query: str | int) -> Answer:
        headers = ("Accept: application/vnd.tenuto.records",)
        target = f"{path}?{urlencode(query)}"
        return await fetch_soon(door, server.port, target, ca=ca_file, headers=headers)

    def marks(answer: Answer) -> list[Mark]:
        assert (answer.status, answer.result) == (200, 0)
        records = RecordDecoder().feed(answer.body)
        return [record for record in records if isinstance(record, Mark)]

    whole = await ask("/v1/speak", text=text, lead="max")
    session, words = whole.headers["tenuto-session"], marks(whole)
    come = 150
    late = await ask(f"/v1/sessions/{session}/audio", **{"from": come})
    assert (late.status, late.json["code"]) == (410, "too-old")
    assert late.json["first"] > come + 200
    rest = marks(
        await ask(
            "/v1/speak",
            text=text,
            lead="max",
            offset=late.json["text_offset"],
            **{"from": come},
        )
    )
    heard = [mark.text_offset for mark in words if mark.sequence < come]
    assert late.json["text_offset"] == heard[-1]
    spoken = [mark.text_offset for mark in rest]
    assert spoken == sorted(spoken)
    assert rest[0].sequence == come
    assert {*heard, *spoken} == {mark.text_offset for mark in words}
