"""A stream goes on by itself over legs that come and go: nothing missing, nothing twice."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tenuto.client import (
    ConnectError,
    Cut,
    EpochBegun,
    GapSeen,
    Interrupted,
    Moved,
    Restarted,
    Resumed,
    Retrying,
    RetryPolicy,
    Stayed,
    Stream,
    StreamCut,
    Transport,
    TransportFailed,
    Trust,
    open_stream,
)
from tenuto.errors import ErrorCode, RequestError
from tenuto.wire import End, Format, Mark, Notice
from tests.client.authority import Pair
from tests.client.opener import Opener
from tests.client.peer import (
    AUDIO,
    RECORDS,
    Asked,
    Encodable,
    Out,
    frames,
    problem,
    records,
    serving,
)

QUICK = RetryPolicy(base=0.01, cap=0.05, patience=2.0)


@dataclass
class Session:
    """A session of `count` frames; `cuts` holds how many frames each leg brings, then none cut."""

    count: int = 50
    cuts: list[int] = field(default_factory=list)
    notice: dict[str, object] | None = None
    clean: bool = False
    """A cut is a clean end without END."""
    overlap: int = 0
    """So many frames before the one asked for come again."""
    asked: list[dict[str, str]] = field(default_factory=list)
    token: str = ""

    async def __call__(self, asked: Asked, out: Out) -> None:
        parts = urlsplit(asked.path)
        query = {**dict(parse_qsl(parts.query)), "path": parts.path}
        query["authorization"] = asked.headers.get("authorization", "")
        self.asked.append(query)
        start = max(0, int(query.get("from", 0)) - self.overlap)
        token = {"tenuto_token": self.token} if self.token else {}
        await out.head(200, RECORDS, tenuto_session="s-1", **token)
        await out.send(records(Format(AUDIO, start)))
        stop = start + self.cuts.pop(0) if self.cuts else self.count
        await out.send(records(*frames(stop - start, start)))
        if stop >= self.count:
            await out.send(records(End(self.count, 320 * self.count)))
            await out.end()
            return
        if self.notice is not None:
            await out.send(records(Notice(json.dumps(self.notice))))
        await (out.end() if self.clean else out.cut())


def of_kind(opened: Opener, kind: type[Any]) -> list[Any]:
    return [event for event in opened.events if isinstance(event, kind)]


@pytest.fixture
def going_on(opened: Opener) -> Opener:
    opened.resume = QUICK
    return opened


@pytest.mark.parametrize("overlap", [0, 3])
@pytest.mark.parametrize("clean", [False, True])
async def test_a_cut_stream_goes_on_with_nothing_missing_and_nothing_twice(
    going_on: Opener, transport: Transport, clean: bool, overlap: int
) -> None:
    script = Session(cuts=[7, 9 + overlap, 1 + overlap], clean=clean, overlap=overlap)
    async with going_on(script) as stream:
        assert [frame async for frame in stream] == frames(50)
        assert stream.complete
        assert not stream.interrupted
    assert (stream.received, stream.gaps, stream.duplicates) == (50, 0, 3 * overlap)
    assert [query.get("from") for query in script.asked] == [None, "7", "16", "17"]
    assert {query.get("epoch") for query in script.asked[1:]} == {"0"}
    assert len({query["listener"] for query in script.asked}) == 1
    assert [event.next_sequence for event in of_kind(going_on, Interrupted)] == [7, 16, 17]
    resumed = of_kind(going_on, Resumed)
    assert [event.transport for event in resumed] == [transport] * 3
    assert all(0 <= event.handshake <= event.gap < 2 for event in resumed)
    assert not of_kind(going_on, Cut)


@pytest.mark.parametrize("path", ["/v1/speak?text=x&mode=live", "/v1/sessions/s-1/audio?mode=live"])
async def test_the_mode_that_a_url_asks_for_is_asked_for_again(going_on: Opener, path: str) -> None:
    script = Session(cuts=[7])
    async with going_on(script, path) as stream:
        assert [frame async for frame in stream] == frames(50)
    assert [query.get("mode") for query in script.asked] == ["live", "live"]


@pytest.mark.parametrize("path", ["/v1/speak?text=x", "/v1/sessions/s-1/audio"])
async def test_the_mode_is_asked_for_from_the_first_on(pair: Pair, trust: Trust, path: str) -> None:
    script = Session(cuts=[7])
    async with (
        serving(pair, script) as peer,
        open_stream(
            peer.url(path=path), transport="tcp", trust=trust, resume=QUICK, mode="gapless"
        ) as stream,
    ):
        assert [frame async for frame in stream] == frames(50)
    assert [query.get("mode") for query in script.asked] == ["gapless", "gapless"]


async def test_every_leg_comes_from_a_new_port(
    going_on: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports: list[int] = []
    real = socket.socket.connect

    def noted(self: socket.socket, address: Any) -> None:
        with suppress(BlockingIOError):
            real(self, address)
        ports.append(self.getsockname()[1])

    class Noted(socket.socket):
        connect = noted

    monkeypatch.setattr(socket, "socket", Noted)
    async with going_on(Session(cuts=[5, 5, 5])) as stream:
        assert len([frame async for frame in stream]) == 50
    assert len(set(ports)) == len(ports) >= 4


async def test_a_leg_that_dies_before_its_first_frame_is_one_more_attempt(
    going_on: Opener,
) -> None:
    script = Session(cuts=[5, 0, 0])
    async with going_on(script) as stream:
        assert [frame async for frame in stream] == frames(50)
    (resumed,) = of_kind(going_on, Resumed)
    assert resumed.attempts == 3
    assert [event.attempt for event in of_kind(going_on, Retrying)] == [1, 2, 3]
    assert len(of_kind(going_on, Interrupted)) == 1


async def test_patience_ends_and_says_what_it_met(pair: Pair, trust: Trust) -> None:
    policy = RetryPolicy(base=0.01, cap=0.05, patience=0.3)
    async with (
        serving(pair, Session(cuts=[5])) as peer,
        open_stream(peer.url(), transport="tcp", trust=trust, resume=policy) as stream,
    ):
        peer.script = problem(503, code="at-capacity", detail="no room", retry_after=0.05)
        with pytest.raises(StreamCut, match="no room; nothing went on within 0.3 s") as caught:
            [frame async for frame in stream]
    assert caught.value.code is ErrorCode.AT_CAPACITY
    assert caught.value.next_sequence == 5


async def test_retry_after_of_a_refusal_and_of_a_notice_are_floors(
    pair: Pair, trust: Trust
) -> None:
    events: list[Any] = []
    notice = {"code": "draining", "message": "back soon", "retry_after": 0.25}
    script = Session(cuts=[5], notice=notice)
    answers: list[Callable[[Asked, Out], Awaitable[None]]] = [
        problem(503, code="at-capacity", detail="x", retry_after=0.15),
        problem(500, code="internal", detail="x"),
    ]

    async def play(asked: Asked, out: Out) -> None:
        if "from=" in asked.path and answers:
            await answers.pop(0)(asked, out)
        else:
            await script(asked, out)

    async with (
        serving(pair, play) as peer,
        open_stream(
            peer.url(), transport="tcp", trust=trust, resume=QUICK, on_event=events.append
        ) as stream,
    ):
        assert [frame async for frame in stream] == frames(50)
    waits = [event.wait for event in events if isinstance(event, Retrying)]
    assert len(waits) == 3
    assert 0.25 <= waits[0] <= 0.26
    assert 0.15 <= waits[1] <= 0.17
    assert 0 <= waits[2] <= 0.04


@pytest.mark.parametrize("code", ["superseded", "source-failed", "forbidden", "expired-session"])
async def test_a_notice_that_no_other_leg_would_change_is_final(
    going_on: Opener, code: str
) -> None:
    script = Session(cuts=[5], notice={"code": code, "message": "no more"})
    async with going_on(script, "/v1/speak?text=x&listener=me") as stream:
        with pytest.raises(StreamCut, match="no more") as caught:
            [frame async for frame in stream]
    assert caught.value.code.value == code
    assert len(script.asked) == 1


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (403, "forbidden"),
        (401, "token-expired"),
        (406, "not-acceptable"),
        (400, "bad-request"),
        (416, "far-ahead"),
        (421, "wrong-node"),
        (404, "unknown-session"),
        (410, "expired-session"),
    ],
)
async def test_a_refusal_that_nothing_will_change_is_final(
    pair: Pair, trust: Trust, status: int, code: str
) -> None:
    """By its id alone a session's source is not known: it cannot be had again."""
    async with serving(pair, Session(cuts=[5])) as peer:
        url = peer.url(path="/v1/sessions/s-1/audio")
        async with open_stream(url, transport="tcp", trust=trust, resume=QUICK) as stream:
            peer.script = problem(status, code=code, detail="not again")
            with pytest.raises(StreamCut, match="not again") as caught:
                [frame async for frame in stream]
            assert len(peer.asked) == 2
    assert caught.value.code.value == code


async def test_a_session_that_was_closed_while_we_were_away_is_not_begun_again(
    pair: Pair, trust: Trust
) -> None:
    async with (
        serving(pair, Session(cuts=[5])) as peer,
        open_stream(peer.url(), transport="tcp", trust=trust, resume=QUICK) as stream,
    ):
        peer.script = problem(410, code="expired-session", detail="closed", closed=True)
        with pytest.raises(StreamCut, match="closed"):
            [frame async for frame in stream]
        assert len(peer.asked) == 2


async def test_a_proxy_that_has_lost_its_server_is_asked_again(pair: Pair, trust: Trust) -> None:
    script = Session(cuts=[5])
    left = [404, 404, 502]

    async def play(asked: Asked, out: Out) -> None:
        if script.asked and left:
            await out.head(left.pop(), "text/html")
            await out.end()
        else:
            await script(asked, out)

    async with (
        serving(pair, play) as peer,
        open_stream(peer.url(), transport="tcp", trust=trust, resume=QUICK) as stream,
    ):
        assert [frame async for frame in stream] == frames(50)
    assert not left


async def test_too_old_without_a_source_goes_on_at_the_first_frame_with_a_gap(
    pair: Pair, trust: Trust
) -> None:
    script = Session(cuts=[5])

    async def play(asked: Asked, out: Out) -> None:
        if "from=5" in asked.path:
            old = problem(410, code="too-old", detail="x", first=12, end=40, epoch=0)
            await old(asked, out)
        else:
            await script(asked, out)

    events: list[Any] = []
    async with serving(pair, play) as peer:
        url = peer.url(path="/v1/sessions/s-1/audio")
        async with open_stream(
            url, transport="tcp", trust=trust, resume=QUICK, on_event=events.append
        ) as stream:
            assert [frame.sequence async for frame in stream] == [*range(5), *range(12, 50)]
    assert stream.gaps == 7
    assert GapSeen(5, 7, announced=False) in events


async def test_an_old_epoch_goes_on_in_the_new_one(pair: Pair, trust: Trust) -> None:
    """What the flush dropped is no gap."""
    asked_for: list[str] = []

    async def play(asked: Asked, out: Out) -> None:
        asked_for.append(asked.path)
        if len(asked_for) == 1:
            await Session(cuts=[5])(asked, out)
        elif "epoch=0" in asked.path:
            old = problem(410, code="old-epoch", detail="x", epoch=2, base=30, first=30)
            await old(asked, out)
        else:
            await out.head(tenuto_session="s-1")
            await out.send(records(Format(AUDIO, 30, 2, 30), *frames(4, 30), End(4, 1280)))
            await out.end()

    events: list[Any] = []
    async with (
        serving(pair, play) as peer,
        open_stream(
            peer.url(), transport="tcp", trust=trust, resume=QUICK, on_event=events.append
        ) as stream,
    ):
        assert [frame.sequence async for frame in stream] == [*range(5), *range(30, 34)]
    assert (stream.gaps, stream.epoch) == (0, 2)
    assert EpochBegun(2, 30, 0) in events
    assert "epoch=2&from=30" in asked_for[2]


async def anew(
    pair: Pair, trust: Trust, path: str, begin: bytes, answer: bytes, **refusal: Any
) -> tuple[Stream, list[Asked], list[Any]]:
    """Cut after `begin`, refused like that, and then a new session answers."""
    asked_for: list[Asked] = []
    events: list[Any] = []
    refusal = {"status": 404, "code": "unknown-session", "detail": "gone", **refusal}

    async def play(asked: Asked, out: Out) -> None:
        asked_for.append(asked)
        if "/sessions/" in asked.path:
            await problem(**refusal)(asked, out)
            return
        await out.head(tenuto_session=f"s-{len(asked_for)}")
        await out.send(begin if len(asked_for) == 1 else answer)
        await (out.cut() if len(asked_for) == 1 else out.end())

    async with (
        serving(pair, play) as peer,
        open_stream(
            peer.url(path=path), transport="tcp", trust=trust, resume=QUICK, on_event=events.append
        ) as stream,
    ):
        got = [frame async for frame in stream]
    assert [frame.sequence for frame in got] == list(range(len(got)))
    return stream, asked_for, events


@pytest.mark.parametrize(("status", "code"), [(404, "unknown-session"), (410, "expired-session"),
                                              (410, "too-old"), (421, "wrong-node")])  # fmt: skip
async def test_a_file_goes_on_in_a_new_session_where_it_was(
    pair: Pair, trust: Trust, status: int, code: str
) -> None:
    rest = records(Format(AUDIO, 20, 0, 20), *frames(10, 20), End(10, 3200))
    first = records(Format(AUDIO, 0), *frames(20))
    path = "/v1/speak?file=a.wav&skip=100&lead=3&token=secret"
    stream, asked, events = await anew(
        pair, trust, path, first, rest, status=status, code=code, first=25
    )
    query = dict(parse_qsl(urlsplit(asked[-1].path).query))
    assert {name: query[name] for name in ("file", "from", "skip", "lead")} == {
        "file": "a.wav", "from": "20", "skip": "120", "lead": "3"
    }  # fmt: skip
    assert "token" not in query
    assert asked[-1].headers["authorization"] == "Bearer secret"
    assert (stream.received, stream.gaps, stream.session) == (30, 0, "s-3")
    assert Restarted("s-3", 20, skip=120) in events


@pytest.mark.parametrize(("marks", "offset"), [([0, 7, 19], "7"), ([], "0")])
async def test_speech_says_the_clause_again_that_was_begun(
    pair: Pair, trust: Trust, marks: list[int], offset: str
) -> None:
    """Of the marks that came, the last one whose sound had begun."""
    sent: list[Encodable] = [Format(AUDIO, 0), *frames(20)]
    at = {0: 0, 7: 10, 19: 20}
    for text_offset in marks:
        sent.insert(
            1 + at[text_offset] + marks.index(text_offset), Mark(at[text_offset], text_offset)
        )
    rest = records(Format(AUDIO, 20, 0, 20), *frames(10, 20), End(10, 3200))
    path = "/v1/speak?text=Hello.+How+are+you%3F&voice=en"
    stream, asked, events = await anew(pair, trust, path, records(*sent), rest)
    query = dict(parse_qsl(urlsplit(asked[-1].path).query))
    assert (query["offset"], query["from"], query["voice"]) == (offset, "20", "en")
    assert "skip" not in query
    assert Restarted("s-3", 20, text_offset=int(offset)) in events


async def test_the_session_is_at_another_node(pair: Pair, trust: Trust) -> None:
    script = Session(cuts=[5])
    async with serving(pair, script) as other, serving(pair, script) as peer:
        async with open_stream(peer.url(), transport="tcp", trust=trust, resume=QUICK) as stream:
            peer.script = problem(421, code="wrong-node", detail="x", url=other.url(path="/"))
            assert [frame async for frame in stream] == frames(50)
        assert len(other.asked) == 1


async def test_a_cancelled_step_is_taken_up_again(going_on: Opener) -> None:
    """A caller that gives up waiting and asks again loses no frame and starts no second retry."""
    going_on.resume = RetryPolicy(base=0.3, cap=0.3, patience=5)
    script = Session(cuts=[5])
    got = []
    async with going_on(script) as stream:
        with suppress(StopAsyncIteration):
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.1):
                        got.append(await anext(stream))
    assert got == frames(50)
    assert len(of_kind(going_on, Interrupted)) == 1


async def test_tokens_go_into_the_header_and_a_session_has_its_own(
    pair: Pair, trust: Trust
) -> None:
    script = Session(cuts=[5], token="of-the-session")
    async with (
        serving(pair, script) as peer,
        open_stream(
            peer.url(),
            transport="tcp",
            trust=trust,
            resume=QUICK,
            token="mine",
        ) as stream,
    ):
        assert [frame async for frame in stream] == frames(50)
    assert [query["authorization"] for query in script.asked] == [
        "Bearer mine", "Bearer of-the-session"
    ]  # fmt: skip


# Moving by hand


@dataclass
class Paced:
    """A session whose frames come in real time; legs end when their listener leaves."""

    count: int = 100
    pace: float = 0.002
    legs: int = 0

    async def __call__(self, asked: Asked, out: Out) -> None:
        query = dict(parse_qsl(urlsplit(asked.path).query))
        start = int(query.get("from", 0))
        self.legs += 1
        await out.head(tenuto_session="s-1")
        await out.send(records(Format(AUDIO, start)))
        for frame in frames(self.count - start, start):
            await out.send(records(frame))
            await asyncio.sleep(self.pace)
        await out.send(records(End(self.count, 320 * self.count)))
        await out.end()


async def test_who_is_superseded_by_a_leg_of_its_own_goes_on(going_on: Opener) -> None:
    """Its listener id is known to nobody else: a request of ours came late, and nobody reads it."""
    script = Session(cuts=[5], notice={"code": "superseded", "message": "no more"})
    async with going_on(script) as stream:
        assert [frame async for frame in stream] == frames(50)
    assert [event.attempts for event in of_kind(going_on, Resumed)] == [1]


async def test_a_stream_moves_while_it_plays(going_on: Opener, transport: Transport) -> None:
    other: Transport = "tcp" if transport == "quic" else "quic"
    script = Paced(count=300)
    async with going_on(script) as stream:
        got = [await anext(stream) for _ in range(10)]

        async def read() -> None:
            got.extend([frame async for frame in stream])

        reading = asyncio.create_task(read())
        for there in (other, transport, other):
            await stream.move(there)
            assert stream.transport == there
        await reading
    assert got == frames(300)
    assert (stream.gaps, script.legs) == (0, 4)
    assert [event.transport for event in of_kind(going_on, Moved)] == [other, transport, other]
    assert not of_kind(going_on, Interrupted)


async def test_a_move_that_fails_changes_nothing(going_on: Opener) -> None:
    async with going_on(Paced(count=100)) as stream:
        going_on.peer.script = problem(403, code="forbidden", detail="x")
        with pytest.raises(RequestError, match="x"):
            await stream.move("tcp")
        assert [frame async for frame in stream] == frames(100)


@pytest.mark.parametrize(
    ("status", "code"),
    [(410, "too-old"), (410, "old-epoch"), (410, "expired-session"), (404, "unknown-session"),
     (421, "wrong-node")],
)  # fmt: skip
async def test_a_move_makes_no_new_session_and_leaves_nothing_out(
    going_on: Opener, status: int, code: str
) -> None:
    """What another leg could not bring exactly, the present one still does."""
    path = "/v1/speak?file=a.wav"
    async with going_on(Paced(count=100), path) as stream:
        answer = problem(status, code=code, detail="x", first=40, epoch=1, base=40)
        going_on.peer.script = answer
        for _ in range(3):
            with pytest.raises(RequestError, match="x"):
                await stream.move("tcp")
        assert [frame async for frame in stream] == frames(100)
        paths = {asked.path.partition("?")[0] for _, asked in going_on.peer.asked[1:]}
        assert paths == {"/v1/sessions/s-1/audio"}
    assert stream.gaps == 0


async def test_a_leg_that_is_lost_does_not_wait_for_a_move_that_leads_nowhere(
    pair: Pair, trust: Trust
) -> None:
    """UDP is swallowed: the move has ten seconds, the listener has not."""
    async with (
        serving(pair, Session(cuts=[5])) as peer,
        open_stream(peer.url(), transport="tcp", trust=trust, resume=QUICK) as stream,
    ):
        peer.vanish()
        await asyncio.sleep(0.05)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hole:
            hole.bind(("127.0.0.1", peer.port))
            moving = asyncio.create_task(stream.move("quic"))
            await asyncio.sleep(0.05)
            async with asyncio.timeout(5):
                got = [frame async for frame in stream]
            with pytest.raises(ConnectError, match="lost meanwhile"):
                await moving
    assert got == frames(50)


async def test_another_network_ends_a_wait(pair: Pair, trust: Trust) -> None:
    """It was for the path that we have left."""
    slow = RetryPolicy(base=60.0, cap=60.0, patience=120.0)
    async with (
        serving(pair, Session(cuts=[5])) as peer,
        open_stream(peer.url(), transport="tcp", trust=trust, resume=slow) as stream,
    ):
        got = [await anext(stream) for _ in range(5)]
        going_on = asyncio.create_task(anext(stream))
        async with asyncio.timeout(5):
            while not stream.interrupted:
                await asyncio.sleep(0.01)
            while not going_on.done():
                stream.rebind()
                await asyncio.sleep(0.05)
        got += [await going_on] + [frame async for frame in stream]
    assert got == frames(50)


async def test_another_network_is_dialed_at_once(pair: Pair, trust: Trust) -> None:
    """The attempt that is on its way has ten seconds, the listener has not."""
    script, go, loop = Session(), asyncio.Event(), asyncio.get_running_loop()

    async def play(asked: Asked, out: Out) -> None:
        if not go.is_set():
            await out.head(200, RECORDS, tenuto_session="s-1")
            await out.send(records(Format(AUDIO, 0), *frames(5)))
            await go.wait()
            await out.cut()
        else:
            await script(asked, out)

    async with (
        serving(pair, play) as peer,
        open_stream(peer.url(), transport="tcp", trust=trust, resume=QUICK) as stream,
    ):
        peer.vanish()
        await asyncio.sleep(0.05)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hole:
            hole.setblocking(False)
            hole.bind(("127.0.0.1", peer.port))
            go.set()
            got = [await anext(stream) for _ in range(5)]
            going_on = asyncio.create_task(anext(stream))
            while not stream.interrupted:
                await asyncio.sleep(0)
            await stream.move("quic")  # What is tried next, and swallowed.
            async with asyncio.timeout(5):
                _, first = await loop.sock_recvfrom(hole, 2048)
                stream.rebind()
                while (await loop.sock_recvfrom(hole, 2048))[1] == first:
                    pass
        async with asyncio.timeout(5):  # UDP is refused now, and TCP is next.
            got += [await going_on] + [frame async for frame in stream]
    assert got == frames(50)


async def test_another_network_does_not_shorten_what_the_server_asks_for(
    pair: Pair, trust: Trust
) -> None:
    notice = {"code": "at-capacity", "message": "full", "retry_after": 0.5}
    script = Session(cuts=[5], notice=notice)
    async with (
        serving(pair, script) as peer,
        open_stream(peer.url(), transport="tcp", trust=trust, resume=QUICK) as stream,
    ):
        got = [await anext(stream) for _ in range(5)]
        going_on = asyncio.create_task(anext(stream))
        while not stream.interrupted:
            await asyncio.sleep(0)
        for _ in range(4):
            stream.rebind()
            await asyncio.sleep(0.1)
        assert len(script.asked) == 1
        got += [await going_on] + [frame async for frame in stream]
    assert got == frames(50)


async def test_a_move_meant_for_another_network_is_made_again(pair: Pair, trust: Trust) -> None:
    """TCP cannot rebind: what was on its way there is asked for anew, and soon."""
    script = Paced(count=100, pace=0.01)
    swallowed = asyncio.Event()

    async def play(asked: Asked, out: Out) -> None:
        if script.legs == 1 and not swallowed.is_set():
            swallowed.set()
        else:
            await script(asked, out)

    async with (
        serving(pair, play) as peer,
        open_stream(peer.url(), transport="tcp", trust=trust, resume=QUICK) as stream,
    ):
        stream.rebind()
        await swallowed.wait()
        stream.rebind()
        assert [frame async for frame in stream] == frames(100)
        moves = [(type(event), event.reason) for event in stream.events
                 if isinstance(event, Moved | Stayed)]  # fmt: skip
    reason = "the stream stays where it is: the network has changed"
    assert moves == [(Stayed, reason), (Moved, "network change")]


async def test_a_move_while_interrupted_is_a_wish_for_one_attempt(pair: Pair, trust: Trust) -> None:
    """UDP refuses: what is tried after it is what was asked for at first."""
    async with (
        serving(pair, Session(cuts=[5])) as peer,
        open_stream(peer.url(), transport="tcp", trust=trust, resume=QUICK) as stream,
    ):
        got = [await anext(stream) for _ in range(5)]
        peer.vanish()
        going_on = asyncio.create_task(anext(stream))
        while not stream.interrupted:
            await asyncio.sleep(0)
        await stream.move("quic")
        got += [await going_on] + [frame async for frame in stream]
        failed = [event.failure for event in stream.events if isinstance(event, TransportFailed)]
        assert [failure.transport for failure in failed] == ["quic"]
    assert got == frames(50)


async def test_a_move_that_is_cancelled_leaves_no_leg_behind(going_on: Opener) -> None:
    async with going_on(Paced(count=100)) as stream:
        for wait in (0.0, 0.001, 0.01, 0.05):
            moving = asyncio.create_task(stream.move("tcp"))
            await asyncio.sleep(wait)
            moving.cancel()
            with suppress(asyncio.CancelledError):
                await moving
        assert [frame async for frame in stream] == frames(100)
    assert stream.gaps == 0
