"""One session for one Idempotency-Key, however often and over whatever it is asked for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from tenuto.errors import ErrorCode, RequestError
from tenuto.host import Tally
from tenuto.media import Frame
from tenuto.session import Session
from tenuto.sources import read_index
from tenuto.web.repeats import KEY_KEPT, MAX_KEYS, Repeats
from tenuto.wire import RecordDecoder
from tests.conftest import StartServer
from tests.support.fetch import DOORS, fetch_soon

SPEAK = "/v1/speak?source=counting&frames=5&lead=max"


def request(key: str | None, *, token: str = "") -> Request:
    headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
    if key is not None:
        headers.append((b"idempotency-key", key.encode()))
    return Request({"type": "http", "headers": headers, "query_string": b""})


class Maker:
    """Sessions with a number each; only their ids matter here."""

    def __init__(self) -> None:
        self.made: dict[str, Session] = {}
        self.now = 0.0
        self.tally = Tally()
        self.repeats = Repeats(lambda: self.now, self.made.__getitem__, self.tally)

    async def make(self) -> Session:
        await asyncio.sleep(0)
        name = f"s{len(self.made)}"
        session: Session = SimpleNamespace(id=name)  # type: ignore[assignment]
        self.made[name] = session
        return session

    async def ask(
        self,
        key: str | None,
        *,
        token: str = "",
        make: Callable[[], Awaitable[Session]] | None = None,
        **parameters: str,
    ) -> str:
        asked = request(key, token=token)
        session, again = await self.repeats.once(asked, parameters, make or self.make)
        return f"{session.id}{'*' if again else ''}"


@pytest.fixture
def maker() -> Maker:
    return Maker()


async def test_a_key_makes_one_session(maker: Maker) -> None:
    assert await maker.ask("k", text="a") == "s0"
    assert await maker.ask("k", text="a") == "s0*"
    assert await maker.ask('"k"', text="a") == "s0*"  # a string of RFC 8941
    assert await maker.ask("other", text="a") == "s1"
    assert await maker.ask(None, text="a") == "s2"
    assert await maker.ask(None, text="a") == "s3"


async def test_two_at_once_are_one(maker: Maker) -> None:
    both = await asyncio.gather(*(maker.ask("k") for _ in range(10)))
    assert both == ["s0"] + ["s0*"] * 9


async def test_another_token_is_another_key(maker: Maker) -> None:
    assert await maker.ask("k", token="a") == "s0"
    assert await maker.ask("k", token="b") == "s1"


async def test_a_key_that_went_with_something_else(maker: Maker) -> None:
    await maker.ask("k", text="a")
    with pytest.raises(RequestError, match="another request") as caught:
        await maker.ask("k", text="b")
    assert caught.value.code is ErrorCode.KEY_REUSED


@pytest.mark.parametrize("key", ["", "a b", "x" * 129, "k\u00e4", '"k', 'k"', '"'])
async def test_a_key_that_is_none(maker: Maker, key: str) -> None:
    with pytest.raises(RequestError, match="Idempotency-Key"):
        await maker.ask(key)


async def test_where_the_first_fails_the_second_is_the_first(maker: Maker) -> None:
    async def fail() -> Session:
        await asyncio.sleep(0.01)
        raise RequestError(ErrorCode.AT_CAPACITY, "full")

    first = asyncio.create_task(maker.ask("k", make=fail))
    await asyncio.sleep(0)
    second = asyncio.create_task(maker.ask("k"))
    with pytest.raises(RequestError, match="full"):
        await first
    assert await second == "s0"


async def test_where_the_first_is_cut_off_the_second_is_the_first(maker: Maker) -> None:
    first = asyncio.create_task(maker.ask("k", make=asyncio.Event().wait))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    second = asyncio.create_task(maker.ask("k"))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == "s0"
    assert first.cancelled()


async def test_keys_are_forgotten_after_a_minute_and_beyond_ten_thousand(maker: Maker) -> None:
    assert await maker.ask("k") == "s0"
    maker.now = KEY_KEPT
    assert await maker.ask("k") == "s1"
    for number in range(MAX_KEYS):
        await maker.ask(f"k{number}")
    assert maker.tally.keys_forgotten == 1
    assert await maker.ask("k") == f"s{MAX_KEYS + 2}"
    assert await maker.ask(f"k{MAX_KEYS - 1}") == f"s{MAX_KEYS + 1}*"
    assert maker.tally.keys_forgotten == 2
    assert maker.tally.requests_repeated == 1


async def test_over_both_doors_it_is_one_session_from_its_first_frame_on(
    start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    key = ("Idempotency-Key: 7b1c", "Accept: application/vnd.tenuto.records")
    answers = [
        await fetch_soon(door, server.port, SPEAK, ca=ca_file, headers=key)
        for door in (*DOORS, *DOORS)
    ]
    assert [answer.status for answer in answers] == [200] * 4
    assert len({answer.headers["tenuto-session"] for answer in answers}) == 1
    for answer in answers:
        records = RecordDecoder().feed(answer.body)
        frames = [record for record in records if isinstance(record, Frame)]
        assert [read_index(frame.payload) for frame in frames] == list(range(5))
    metrics = await fetch_soon("tcp", server.port, "/metrics", ca=ca_file)
    assert b"tenuto_host_requests_repeated_total 3.0" in metrics.body
    other = await fetch_soon("tcp", server.port, SPEAK + "&skip=1", ca=ca_file, headers=key)
    assert (other.status, other.json["code"]) == (422, "key-reused")


async def test_a_flush_is_done_once(start_server: StartServer, ca_file: Path) -> None:
    """A second one would say the same from its beginning, to somebody who has heard a part."""
    server = await start_server()
    ask = partial(fetch_soon, port=server.port, ca=ca_file, method="POST")
    made = [await ask("tcp", path="/v1/sessions?source=counting", body=b"") for _ in range(2)]
    controls = [f"/v1/sessions/{each.json['session']}/control" for each in made]

    async def flush(door: str, control: str, key: str, frames: int = 5) -> tuple[int, Any]:
        body = json.dumps({"command": "flush", "source": "counting", "frames": frames}).encode()
        headers = ("Content-Type: application/json", *([f"Idempotency-Key: {key}"] if key else []))
        answer = await ask(door, path=control, body=body, headers=headers)
        return answer.status, answer.json.get("epoch", answer.json.get("code"))

    assert [await flush(door, controls[0], "1") for door in (*DOORS, *DOORS)] == [(200, 1)] * 4
    assert await flush("tcp", controls[0], "2") == (200, 2)
    assert [await flush("tcp", controls[0], "") for _ in range(2)] == [(200, 3), (200, 4)]
    assert await flush("tcp", controls[0], "1", frames=6) == (422, "key-reused")
    assert await flush("tcp", controls[1], "1") == (422, "key-reused")
    assert server.host.tally.flushes == 4


async def test_a_session_is_created_once(start_server: StartServer, ca_file: Path) -> None:
    server = await start_server()
    made = [
        await fetch_soon(
            door,
            server.port,
            "/v1/sessions?source=counting",
            ca=ca_file,
            method="POST",
            body=b"",
            headers=("Idempotency-Key: 1",),
        )
        for door in DOORS
    ]
    assert [answer.status for answer in made] == [201, 201]
    assert made[0].json["session"] == made[1].json["session"]
    assert len(server.host) == 1
