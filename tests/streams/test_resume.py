"""Going on where one left, on either door, by requests that nobody's client made."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from quicserver.app import Server
from tenuto.media import Frame
from tenuto.sources import read_index
from tenuto.wire import End, Format, Gap, Keepalive, Notice, Record, RecordDecoder
from tests.conftest import StartServer
from tests.support.fetch import DOORS, Answer, fetch_soon

RECORDS = ("Accept: application/vnd.tenuto.records",)

NONSENSE = ("", "-1", "+1", "1.5", "1e3", "0x10", " 1", "1_0", "soon", "1" * 19, "٣", "\0")

Ask = Callable[..., Coroutine[Any, Any, Answer]]


def asker(door: str, server: Server, ca: Path) -> Ask:
    async def ask(path: str, body: dict[str, Any] | None = None) -> Answer:
        return await fetch_soon(
            door,
            server.port,
            path,
            ca=ca,
            method="GET" if body is None else "POST",
            body=None if body is None else json.dumps(body).encode(),
            headers=RECORDS,
        )

    return ask


async def create(ask: Ask, **source: Any) -> str:
    """The path of a new session."""
    answer = await ask("/v1/sessions", {"source": "counting", **source})
    assert answer.status == 201, answer.body
    return f"/v1/sessions/{answer.json['session']}"


def frames(records: Sequence[Record]) -> list[Frame]:
    return [record for record in records if isinstance(record, Frame)]


def refused(answer: Answer) -> tuple[int, str, dict[str, Any]]:
    told = answer.json
    facts = {
        name: value
        for name, value in told.items()
        if name not in ("type", "title", "status", "code", "detail", "remedy")
    }
    assert told["detail"]
    return answer.status, told["code"], facts


@pytest.mark.parametrize("door", DOORS)
async def test_every_refusal_of_a_resume_is_told_apart(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    start = 65_536 - 300
    server = await start_server(first_sequence=start)
    ask = asker(door, server, ca_file)
    path = await create(ask, frames=1000)
    whole = RecordDecoder().feed((await ask(f"{path}/audio?lead=max")).body)
    assert [frame.sequence for frame in frames(whole)] == list(range(start, start + 1000))
    end, first = start + 1000, start + 1000 - 620
    held = {"first": first, "end": end, "epoch": 0}
    for query in (f"from={start}", f"from={first - 1}&epoch=0", "from=0"):
        assert refused(await ask(f"{path}/audio?{query}")) == (410, "too-old", held)
    for query in (f"from={end + 1}", "from=999999999999999999", "epoch=1", f"from={first}&epoch=9"):
        assert refused(await ask(f"{path}/audio?{query}")) == (416, "far-ahead", held)
    for nonsense in NONSENSE:
        for name in ("from", "epoch"):
            answer = await ask(f"{path}/audio?{name}={quote(nonsense)}")
            assert refused(answer) == (400, "bad-request", {}), nonsense
            assert name in answer.json["detail"]
    assert refused(await ask(f"{path}/audio?mode=fast")) == (400, "bad-request", {})
    unknown = f"/v1/sessions/{'0' * 32}/audio"
    assert refused(await ask(unknown)) == (404, "unknown-session", {})
    elsewhere = f"/v1/sessions/us2-{'0' * 32}/audio"
    assert refused(await ask(elsewhere)) == (421, "wrong-node", {"node": "us2"})
    flushed = await ask(f"{path}/control", {"command": "flush"})
    assert flushed.json["epoch"] == 1
    now = {"epoch": 1, "first": end, "base": end}
    assert refused(await ask(f"{path}/audio?from={first}&epoch=0")) == (410, "old-epoch", now)
    held = {"first": end, "end": end, "epoch": 1}
    assert refused(await ask(f"{path}/audio?from={first}")) == (410, "too-old", held)
    await ask(f"{path}/control", {"command": "close"})
    last = {"last": end - 1, "closed": True}
    assert refused(await ask(f"{path}/audio?from={end}")) == (410, "expired-session", last)
    assert refused(await ask(f"{path}/control", {"command": "flush"}))[:2] == (
        410,
        "expired-session",
    )


@pytest.mark.parametrize("start", [0, 65_530])
async def test_what_is_resumed_on_any_door_is_the_same_to_the_byte(
    start: int, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server(first_sequence=start)
    asks = [asker(door, server, ca_file) for door in DOORS]
    path = await create(asks[0], frames=200)
    whole = frames(RecordDecoder().feed((await asks[0](f"{path}/audio?lead=max")).body))
    assert [read_index(frame.payload) for frame in whole] == list(range(200))
    for skipped in (0, 1, 5, 6, 7, 33, 199, 200):
        for ask in asks:
            answer = await ask(f"{path}/audio?lead=max&epoch=0&from={start + skipped}")
            records = RecordDecoder().feed(answer.body)
            assert isinstance(records[0], Format)
            assert records[0].sequence == start + skipped
            assert frames(records) == whole[skipped:]
            assert records[-1] == End(200, 200 * 320)
            assert answer.result == 0


@pytest.mark.parametrize("door", DOORS)
async def test_a_flush_opens_a_new_epoch_on_every_open_stream(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server(first_sequence=65_500)
    ask = asker(door, server, ca_file)
    path = await create(ask, frames=100_000)
    hearing = [asyncio.create_task(ask(f"{path}/audio?lead=0.5")) for _ in range(2)]
    plain = asyncio.create_task(fetch_soon(door, server.port, f"{path}/audio?lead=0.5", ca=ca_file))
    await until(lambda: server.host.tally.frames_sent > 200)
    first = (await ask(f"{path}/control", {"command": "flush"})).json
    assert first["epoch"] == 1
    assert first["state"] == "playing"
    assert first["first"] == first["end"] > 65_500 + 60
    assert 299 < first["expires_in"] <= 300
    await asyncio.sleep(0.5)
    await until(lambda: server.host.producers == 0)
    second = (
        await ask(f"{path}/control", {"command": "flush", "source": "counting", "frames": 30})
    ).json
    assert second["epoch"] == 2
    assert second["first"] == first["end"]
    assert second["expires_in"] > 3600
    for answer in await asyncio.gather(*hearing):
        assert answer.result == 0
        records = RecordDecoder().feed(answer.body)
        formats = [record for record in records if isinstance(record, Format)]
        base = first["end"]
        assert [(each.epoch, each.epoch_base, each.sequence) for each in formats] == [
            (0, 65_500, 65_500),
            (1, base, base),
            (2, base, base),
        ]
        places = [records.index(each) for each in formats]
        old = frames(records[: places[1]])
        assert [frame.sequence for frame in old] == list(range(65_500, 65_500 + len(old)))
        assert set(records[places[1] + 1 : places[2]]) == {Keepalive()}
        new = frames(records[places[2] :])
        assert [frame.sequence for frame in new] == list(range(base, base + 30))
        assert [read_index(frame.payload) for frame in new] == list(range(30))
        assert records[-1] == End(30, 30 * 320)
        assert not any(isinstance(record, Gap | Notice) for record in records)
    heard = await plain
    assert (heard.result, (len(heard.body) - 44) % 640) == (0, 0)
    assert heard.body.endswith(b"".join(frame.payload for frame in new))


@pytest.mark.parametrize("door", DOORS)
async def test_a_flush_takes_a_source_as_speak_does_or_says_what_is_wrong(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    ask = asker(door, server, ca_file)
    path = await create(ask, frames=1000)

    async def flush(**source: Any) -> Answer:
        return await ask(f"{path}/control", {"command": "flush", **source})

    for wrong, code in (
        ({"tone": "abc"}, "bad-request"),
        ({"text": ""}, "bad-text"),
        ({"nonsense": 1}, "bad-request"),
        ({"source": "stdin"}, "bad-request"),
        ({"source": "counting", "lead": 1}, "bad-request"),
    ):
        answer = await flush(**wrong)
        assert answer.json["code"] == code, wrong
    assert server.host.tally.flushes == 0
    answer = await flush(tone=440, rate=48_000, seconds=0.1)
    assert (answer.status, answer.json["state"], answer.json["epoch"]) == (200, "new", 1)
    audio = await ask(f"{path}/audio?epoch=1&lead=max")
    records = RecordDecoder().feed(audio.body)
    assert records[-1] == End(5, 4800)


@pytest.mark.parametrize("door", DOORS)
async def test_live_goes_on_with_the_present_and_gapless_where_it_left(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    ask = asker(door, server, ca_file)
    path = await create(ask, source="clock", frames=300)
    await asyncio.sleep(1.6)
    live, gapless, near = await asyncio.gather(
        ask(f"{path}/audio?from=3"),
        ask(f"{path}/audio?from=3&mode=gapless&lead=max"),
        ask(f"{path}/audio"),
    )
    records = RecordDecoder().feed(live.body)
    begin, gap, *rest = [each for each in records if not isinstance(each, Keepalive)]
    assert isinstance(begin, Format)
    assert begin.sequence == 3
    assert isinstance(gap, Gap)
    assert gap.sequence == 3
    assert gap.count > 60
    # On a machine that stands still for half a second there is another.
    missed = [each for each in (gap, *rest) if isinstance(each, Gap)]
    left_out = {each.sequence + n for each in missed for n in range(each.count)}
    heard = [frame.sequence for frame in frames(rest)]
    assert heard == [number for number in range(3, 300) if number not in left_out]
    assert server.host.tally.frames_dropped == len(left_out)
    assert rest[-1] == End(300, 300 * 320)
    got = frames(RecordDecoder().feed(gapless.body))
    assert [frame.sequence for frame in got] == list(range(3, 300))
    got = frames(RecordDecoder().feed(near.body))
    assert got[0].sequence > 60


@pytest.mark.parametrize("door", DOORS)
async def test_a_player_that_stands_still_says_so_and_is_sent_no_more_than_its_lead(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    ask = asker(door, server, ca_file)
    path = await create(ask, frames=200)
    hearing = asyncio.create_task(ask(f"{path}/audio?lead=0.4&listener=me"))
    report = {"command": "progress", "listener": "me", "heard": 10}
    reported, longest = time.monotonic(), 0.0
    for _ in range(10):
        await asyncio.sleep(0.1)
        told = (await ask(f"{path}/control", report)).json
        assert told["state"] in ("playing", "new")
        before, reported = reported, time.monotonic()
        longest = max(longest, reported - before)
    sent = server.host.tally.frames_sent
    # 10 heard, 20 of lead, and what passes between two reports.
    assert sent <= 10 + 20 + longest / 0.02 + 2
    await ask(f"{path}/control", {"command": "pause"})
    await ask(f"{path}/control", {"command": "resume"})
    answer = await hearing
    assert len(frames(RecordDecoder().feed(answer.body))) == 200
    for wrong in (
        {},
        {"heard": 1},
        {"listener": "me"},
        {**report, "more": 1},
        {**report, "heard": -1},
    ):
        answer = await ask(f"{path}/control", {"command": "progress", **wrong})
        assert answer.json["code"] == "bad-request", wrong


@pytest.mark.parametrize("door", DOORS)
async def test_whoever_steers_a_session_is_told_how_long_it_lives(
    door: str, start_server: StartServer, ca_file: Path
) -> None:
    server = await start_server()
    ask = asker(door, server, ca_file)
    created = await ask("/v1/sessions", {"source": "counting", "frames": 10})
    assert 29 < created.json["expires_in"] <= 30
    path = f"/v1/sessions/{created.json['session']}"
    paused = (await ask(f"{path}/control?command=pause", {})).json
    assert paused["state"] == "paused"
    assert 1799 < paused["expires_in"] <= 1800
    assert (paused["epoch"], paused["first"]) == (0, 0)
    assert (await ask(f"{path}/control", {"command": "resume"})).json["state"] == "idle"
    closed = (await ask(f"{path}/control", {"command": "close"})).json
    assert (closed["state"], closed["expires_in"]) == ("expired", 0)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # nobody tells a test
            await asyncio.sleep(0.01)
