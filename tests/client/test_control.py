"""Commands beside the audio: on the same QUIC connection, on one kept open beside TCP."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tenuto.client import ConnectError, EpochBegun, Resumed, RetryPolicy, Transport
from tenuto.errors import ErrorCode, RequestError
from tenuto.wire import End, Format
from tests.client.opener import Opener
from tests.client.peer import AUDIO, Asked, Out, frames, records


class Room:
    """A session that plays until it is flushed, and notes what it is told."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.flushed = asyncio.Event()
        self.refusal: tuple[int, dict[str, Any]] | None = None
        self.silent = False

    async def __call__(self, asked: Asked, out: Out) -> None:
        if urlsplit(asked.path).path.endswith("/control"):
            await self._command(asked, out)
            return
        await out.head(tenuto_session="s 1", tenuto_token="t-1")
        await out.send(records(Format(AUDIO, 0), *frames(20)))
        await self.flushed.wait()
        await out.send(records(Format(AUDIO, 40, 1, 40), *frames(3, 40), End(3, 960)))
        await out.end()

    async def _command(self, asked: Asked, out: Out) -> None:
        self.told.append({"path": asked.path, **json.loads(asked.body)})
        self.headers.append(asked.headers)
        if self.silent:
            return
        status, fields = self.refusal or (200, {"state": "playing", "expires_in": 9})
        await out.head(status, "application/problem+json" if self.refusal else "application/json")
        await out.send(json.dumps({"status": status, **fields}).encode())
        await out.end()
        if self.told[-1]["command"] == "flush" and self.refusal is None:
            self.flushed.set()


@pytest.fixture
def room() -> Room:
    return Room()


async def test_pause_and_resume(opened: Opener, room: Room) -> None:
    async with opened(room) as stream:
        assert (await stream.pause())["expires_in"] == 9
        assert stream.paused
        await stream.resume()
        assert not stream.paused
        assert [await anext(stream) for _ in range(20)] == frames(20)
    assert [told["command"] for told in room.told] == ["pause", "resume"]
    assert {told["path"] for told in room.told} == {"/v1/sessions/s%201/control"}
    assert {headers["authorization"] for headers in room.headers} == {"Bearer t-1"}


async def test_what_was_flushed_is_not_yielded(opened: Opener, room: Room) -> None:
    async with opened(room) as stream:
        got = [(await anext(stream)).sequence for _ in range(5)]
        await stream.flush({"text": "Rather this."})
        while not any(isinstance(event, EpochBegun) for event in stream.events):
            # The one who plays goes on with what it has; the stream is read all the same.
            got.append((await anext(stream)).sequence)
        got += [frame.sequence async for frame in stream]
    assert got[-3:] == [40, 41, 42]
    assert room.told[0]["text"] == "Rather this."
    assert stream.epoch == 1
    assert stream.gaps == 0


async def test_a_flush_without_an_answer_may_be_said_again(
    opened: Opener, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been heard: so it is the same flush, and another text is another one."""
    monkeypatch.setattr("tenuto.client.stream.WITHIN", 0.2)
    room.silent = True
    async with opened(room) as stream:
        for text in ("Rather this.", "Rather this.", "No, that."):
            with pytest.raises(ConnectError, match="told to flush: no answer within"):
                await stream.flush({"text": text})
        room.silent = False
        for _ in range(2):
            await stream.flush({"text": "No, that."})
    first, again, other, heard, anew = (each["idempotency-key"] for each in room.headers)
    assert first == again
    assert other == heard
    assert len({first, other, anew}) == 3


async def test_a_command_is_said_over_the_next_leg_with_the_same_key(
    opened: Opener,
) -> None:
    """The connection goes in the midst of it, and the stream comes back."""
    keys: list[str] = []

    async def script(asked: Asked, out: Out) -> None:
        if urlsplit(asked.path).path.endswith("/control"):
            keys.append(asked.headers["idempotency-key"])
            if len(keys) == 1:
                opened.peer.drop()
                return
            await out.head(200, "application/json")
            await out.send(b"{}")
            await out.end()
            return
        await out.head(tenuto_session="s-1")
        start = 20 * len(keys)
        await out.send(records(Format(AUDIO, start), *frames(20, start)))
        if keys:
            await out.send(records(End(40, 40 * 320)))
            await out.end()

    opened.resume = RetryPolicy(base=0.01, cap=0.05)
    async with opened(script) as stream:
        got = [await anext(stream) for _ in range(20)]
        more = asyncio.create_task(anext(stream))
        assert await stream.flush() == {}
        got += [await more] + [frame async for frame in stream]
    assert got == frames(40)
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert [type(event) for event in opened.events if isinstance(event, Resumed)] == [Resumed]


async def test_what_was_flushed_is_not_said_again_by_a_new_session(opened: Opener) -> None:
    """The answer came, the new epoch did not, and the server has forgotten the session."""
    asked: list[Asked] = []

    async def script(each: Asked, out: Out) -> None:
        url = urlsplit(each.path)
        if url.path.endswith("/control"):
            await out.head(200, "application/json")
            await out.send(b'{"epoch": 1, "end": 30}')
            await out.end()
        elif url.path.endswith("/audio"):
            await out.head(404, "application/problem+json")
            await out.send(b'{"code": "unknown-session", "detail": "not known"}')
            await out.end()
        elif not asked:
            asked.append(each)
            await out.head(tenuto_session="s-1")
            await out.send(records(Format(AUDIO, 0), *frames(5)))
            await asyncio.sleep(0.1)
            await out.send(records(*frames(15, 5)))
        else:
            asked.append(each)
            await out.head(tenuto_session="s-2")
            start = Format(AUDIO, 20, 0, 20)
            await out.send(records(start, *frames(3, 20), End(3, 960)))
            await out.end()

    opened.resume = RetryPolicy(base=0.01, cap=0.05)
    async with opened(script, "/v1/speak?text=Never+mind") as stream:
        got = [await anext(stream) for _ in range(6)]
        await stream.flush({"text": "Rather this."})
        opened.peer.drop()
        async with asyncio.timeout(10):
            while not stream.complete:
                await asyncio.sleep(0.01)
        got += [frame async for frame in stream]
    # What was held of the old text is not yielded, and the new one is said from its beginning.
    assert [frame.sequence for frame in got] == [*range(6), *range(20, 23)]
    query = parse_qs(urlsplit(asked[1].path).query)
    assert (query["text"], query["from"], query["offset"]) == (["Rather this."], ["20"], ["0"])
    assert [type(event) for event in opened.events if isinstance(event, EpochBegun)] == [EpochBegun]


async def test_a_refused_command_does_no_harm(opened: Opener, room: Room) -> None:
    room.refusal = 403, {"code": "forbidden", "detail": "not you"}
    async with opened(room) as stream:
        with pytest.raises(RequestError, match="not you") as caught:
            await stream.pause()
        assert caught.value.code is ErrorCode.FORBIDDEN
        assert not stream.paused
        assert len([await anext(stream) for _ in range(20)]) == 20


async def test_a_command_without_an_answer_is_given_up(
    opened: Opener, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenuto.client.stream.WITHIN", 0.2)
    room.silent = True
    async with opened(room) as stream:
        with pytest.raises(ConnectError, match="told to pause: no answer within"):
            await stream.pause()
        room.silent = False
        await stream.pause()
        assert len([await anext(stream) for _ in range(20)]) == 20


async def test_progress_is_told_once_a_second_at_most_and_not_while_paused(
    opened: Opener, room: Room, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenuto.client.stream.REPORT_INTERVAL", 0.2)
    async with opened(room) as stream:
        began = asyncio.get_running_loop().time()
        for sequence in range(30):
            stream.heard(sequence)
            await asyncio.sleep(0.02)
        took = asyncio.get_running_loop().time() - began
        told = [each["heard"] for each in room.told]
        assert told == sorted(told)
        assert 2 <= len(told) <= took / 0.2 + 1
        await stream.pause()
        before = len(room.told)
        stream.heard(99)
        await asyncio.sleep(0.5)
        assert len(room.told) == before
    assert {each["command"] for each in room.told[:-1]} == {"progress"}
    assert len({each["listener"] for each in room.told[:-1]}) == 1


async def test_reports_that_are_refused_hurt_nothing(
    opened: Opener, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenuto.client.stream.REPORT_INTERVAL", 0.05)
    room.refusal = 500, {"code": "internal", "detail": "no"}
    opened.resume = RetryPolicy(patience=1)
    async with opened(room) as stream:
        for sequence in range(20):
            stream.heard(sequence)
            assert (await anext(stream)).sequence == sequence
            await asyncio.sleep(0.02)
    assert room.told
