"""What a stream yields and raises, the same on both transports."""

from __future__ import annotations

import json

import pytest

from tenuto.client import (
    Cut,
    EpochBegun,
    Finished,
    FormatAnnounced,
    GapSeen,
    MarkReached,
    NoticeReceived,
    StreamCut,
    Transport,
    TransportChosen,
)
from tenuto.errors import ErrorCode, RemoteProtocolError, RequestError
from tenuto.media import Frame
from tenuto.wire import End, Format, Gap, Mark, Notice
from tests.client.opener import Opener
from tests.client.peer import (
    AUDIO,
    Asked,
    Out,
    Script,
    frames,
    problem,
    records,
    sentence,
    whole,
)


def cut_after(body: bytes, *, code: int = 0x54454E10) -> Script:
    async def script(asked: Asked, out: Out) -> None:
        await out.head(tenuto_session="s-1")
        await out.send(body)
        await out.cut(code)

    return script


async def test_a_whole_sentence_arrives_in_order(opened: Opener, transport: Transport) -> None:
    async with opened(whole(sentence(60))) as stream:
        assert stream.format == AUDIO
        came = [frame async for frame in stream]
        assert came == frames(60)
        assert stream.complete
    assert (stream.received, stream.gaps, stream.duplicates) == (60, 0, 0)
    assert stream.samples == 60 * 320
    assert stream.session == "s-1"
    assert stream.transport == transport
    timings = stream.timings
    assert timings.connected is not None
    assert timings.response is not None
    assert timings.first_byte is not None
    assert timings.first_frame is not None
    assert 0 < timings.connected <= timings.response <= timings.first_byte <= timings.first_frame
    chosen, announced, finished = opened.events
    assert isinstance(chosen, TransportChosen)
    assert chosen.transport == transport
    assert announced == FormatAnnounced(AUDIO, 0, 0, 0, 1)
    assert finished == Finished(60, 60 * 320)
    assert stream.events == tuple(opened.events)


@pytest.mark.parametrize("samples", [0, 1, 319, 320, 321])
async def test_every_sample_in_is_a_sample_out(opened: Opener, samples: int) -> None:
    """The tail is a short frame with its true length."""
    count, tail = divmod(samples, 320)
    sent = frames(count)
    if tail:
        sent.append(Frame(count, b"\x07\x00" * tail, tail))
    body = records(Format(AUDIO, 0), *sent, End(len(sent), samples))
    async with opened(whole(body)) as stream:
        assert [frame async for frame in stream] == sent
    assert stream.samples == samples


async def test_any_cut_of_the_bytes_gives_the_same_frames(opened: Opener) -> None:
    body = sentence(5)

    async def script(asked: Asked, out: Out) -> None:
        await out.head()
        for offset in range(0, len(body), 97):
            await out.send(body[offset : offset + 97])
        await out.end()

    async with opened(script) as stream:
        assert [frame async for frame in stream] == frames(5)


async def test_a_cut_stream_never_looks_finished(opened: Opener) -> None:
    """What came is given out, then the cut is raised, again and again."""
    async with opened(cut_after(records(Format(AUDIO, 0), *frames(7)))) as stream:
        came = []
        with pytest.raises(StreamCut, match="cut before frame 7") as caught:
            async for frame in stream:
                came.append(frame)
        assert came == frames(7)
        assert not stream.complete
        with pytest.raises(StreamCut):
            await anext(stream)
    assert (caught.value.next_sequence, caught.value.epoch, caught.value.session) == (7, 0, "s-1")
    assert isinstance(opened.events[-1], Cut)


async def test_a_clean_end_without_end_is_a_cut(opened: Opener) -> None:
    async with opened(whole(records(Format(AUDIO, 0), *frames(3)))) as stream:
        with pytest.raises(StreamCut, match="without END"):
            [frame async for frame in stream]


async def test_a_cut_in_the_middle_of_a_record(opened: Opener) -> None:
    async with opened(cut_after(sentence(4)[:-900])) as stream:
        with pytest.raises(StreamCut) as caught:
            [frame async for frame in stream]
    assert caught.value.next_sequence == 2


async def test_a_notice_before_the_cut_names_the_reason(opened: Opener) -> None:
    said = {
        "code": "source-failed",
        "message": "espeak has crashed",
        "remedy": "try again",
        "resume": {"session": "s-1", "from": 2},
    }
    body = records(Format(AUDIO, 0), *frames(2), Notice(json.dumps(said)))
    async with opened(cut_after(body, code=ErrorCode.SOURCE_FAILED.h3_error)) as stream:
        with pytest.raises(StreamCut, match="espeak has crashed") as caught:
            [frame async for frame in stream]
    assert caught.value.code is ErrorCode.SOURCE_FAILED
    assert caught.value.remedy == "try again"
    notice = next(e for e in opened.events if isinstance(e, NoticeReceived))
    assert notice.fields["resume"] == {"session": "s-1", "from": 2}


async def test_a_notice_that_the_stream_outlived_explains_nothing(opened: Opener) -> None:
    said = Notice(json.dumps({"code": "too-slow", "message": "hurry"}))
    a, b = frames(2)
    async with opened(cut_after(records(Format(AUDIO, 0), a, said, b))) as stream:
        with pytest.raises(StreamCut) as caught:
            [frame async for frame in stream]
    assert caught.value.code is ErrorCode.INTERNAL
    assert "hurry" not in str(caught.value)


async def test_a_notice_of_a_later_version_explains_nothing(opened: Opener) -> None:
    said = Notice(json.dumps({"code": "solar-flare", "message": None}))
    async with opened(cut_after(records(Format(AUDIO, 0), said))) as stream:
        with pytest.raises(StreamCut) as caught:
            [frame async for frame in stream]
    assert caught.value.code is ErrorCode.INTERNAL


async def test_a_new_epoch_counts_from_its_own_base(opened: Opener) -> None:
    body = records(Format(AUDIO, 0), *frames(3), Format(AUDIO, 3, 1, 3), *frames(2, 3), End(2, 640))
    async with opened(whole(body)) as stream:
        # What was not asked for yet when the new epoch began is not played.
        assert [f.sequence async for f in stream] == [3, 4]
        assert stream.epoch == 1
    assert EpochBegun(1, 3, 3) in opened.events
    assert opened.events[-1] == Finished(5, 5 * 320)


async def test_a_cut_before_the_format_is_raised_on_opening(opened: Opener) -> None:
    with pytest.raises(StreamCut):
        async with opened(cut_after(b"\x00")):
            pytest.fail("it opened")


@pytest.mark.parametrize(
    ("end", "error", "message"),
    [
        (End(6, 6 * 320), StreamCut, "of which 1 did not come"),
        (End(4, 4 * 320), RemoteProtocolError, "END counts 4 frames"),
        (End(5, 5 * 320 - 1), RemoteProtocolError, "but 5 and 1600 came"),
    ],
)
async def test_the_totals_of_end_are_checked(
    opened: Opener, end: End, error: type[Exception], message: str
) -> None:
    body = records(Format(AUDIO, 0), *frames(5), end)
    came = []
    async with opened(whole(body)) as stream:
        with pytest.raises(error, match=message):
            async for frame in stream:
                came.append(frame)
        assert not stream.complete
    if error is StreamCut:
        assert came == frames(5)


async def test_a_stream_joined_later_ends_with_the_totals_of_the_epoch(opened: Opener) -> None:
    body = records(Format(AUDIO, 40, 2, 10), *frames(5, 40), End(35, 35 * 320))
    async with opened(whole(body)) as stream:
        assert [f.sequence async for f in stream] == [40, 41, 42, 43, 44]
        assert stream.epoch == 2
    assert opened.events[-1] == Finished(5, 5 * 320)


async def test_gaps_marks_and_duplicates_are_counted(opened: Opener) -> None:
    a, b, c, d, e = frames(5)
    parts = (a, Mark(1, 12), b, b, Gap(2, 1), d, End(4, 4 * 320))
    body = records(Format(AUDIO, 0), *parts)
    async with opened(whole(body)) as stream:
        came = [frame async for frame in stream]
    assert [f.sequence for f in came] == [0, 1, 3]
    assert came[1].marks == (12,)
    assert (stream.received, stream.gaps, stream.duplicates) == (3, 1, 1)
    assert MarkReached(1, 12) in opened.events
    assert GapSeen(2, 1, True) in opened.events


async def test_a_jump_is_a_gap_that_nobody_announced(opened: Opener) -> None:
    a, _, c = frames(3)
    async with opened(whole(records(Format(AUDIO, 0), a, c, End(3, 960)))) as stream:
        assert [f.sequence async for f in stream] == [0, 2]
    assert GapSeen(1, 1, False) in opened.events


@pytest.mark.parametrize(
    "body",
    [
        b"\x02\x03abc",
        records(Format(AUDIO, 0)) + b"\x02\x03\x00\x00a",
        b"\x07\x02\x00\x00",
    ],
)
async def test_hostile_bytes_are_a_typed_error(opened: Opener, body: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        async with opened(whole(body)) as stream:
            [frame async for frame in stream]


@pytest.mark.parametrize("json", ["[1]", "{", "[" * 4000, "", "null"])
async def test_a_notice_that_is_no_object_is_ignored(opened: Opener, json: str) -> None:
    (frame,) = frames(1)
    body = records(Format(AUDIO, 0), Notice(json), frame, End(1, 320))
    async with opened(whole(body)) as stream:
        assert [f.sequence async for f in stream] == [0]


async def test_a_refusal_keeps_the_servers_words(opened: Opener) -> None:
    script = problem(
        410,
        code="too-old",
        detail="frame 3 is no longer held.",
        remedy="go on from frame 9",
        first=9,
    )
    with pytest.raises(RequestError) as caught:
        async with opened(script):
            pytest.fail("it opened")
    error = caught.value
    assert (error.code, error.message) == (ErrorCode.TOO_OLD, "frame 3 is no longer held")
    assert error.remedy == "go on from frame 9"
    assert error.detail == {"first": 9, "status": 410}


async def test_a_refusal_of_another_server_is_understood(opened: Opener) -> None:
    async def script(asked: Asked, out: Out) -> None:
        await out.head(404, "text/html")
        await out.send(b"<h1>" + bytes(200_000))
        await out.end()

    with pytest.raises(RequestError, match="404 Not Found") as caught:
        async with opened(script):
            pytest.fail("it opened")
    assert caught.value.code is ErrorCode.UNKNOWN_ROUTE


async def test_another_media_type_is_no_stream(opened: Opener) -> None:
    async def script(asked: Asked, out: Out) -> None:
        await out.head(200, "text/html")
        await out.send(b"hello")
        await out.end()

    with pytest.raises(RequestError, match="text/html"):
        async with opened(script):
            pytest.fail("it opened")
