"""Encodings and deliveries without a door: what they give, and when."""

from __future__ import annotations

import asyncio
import json

import pytest

from tenuto.errors import SourceError, TenutoError
from tenuto.host import SessionHost
from tenuto.media import AudioFormat, Frame, Piece
from tenuto.session import Session
from tenuto.sources import CountingSource
from tenuto.web import Delivery, DeliveryState, Plan
from tenuto.web.encodings import L16, Records, Wav
from tenuto.wire import End, Format, Notice, RecordDecoder


def notice(message: str, remedy: str = "") -> dict[str, object]:
    session = Session("s" * 32, AudioFormat(), 0.0)
    records = Records(session, session.attach("a", 0.0))
    data = records.notice(SourceError(message, remedy=remedy))
    (record,) = RecordDecoder().feed(data)
    assert isinstance(record, Notice)
    facts: dict[str, object] = json.loads(record.json)
    return facts


@pytest.mark.parametrize(
    "text", ["short", "x" * 100_000, "\ud800 alone", "😀" * 5000, '"' * 9000, "\0" * 9000, ""]
)
def test_any_message_fits_a_notice(text: str) -> None:
    facts = notice(text, text)
    assert facts["code"] == "source-failed"
    assert text.startswith(str(facts["message"]))
    assert (facts["message"] == text) == (len(json.dumps(text)) <= 1200)
    assert facts["resume"] == {"session": "s" * 32, "epoch": 0, "from": 0}


@pytest.mark.parametrize("lead", [0.1, 0.12, 0.18, 0.3, None])
@pytest.mark.parametrize("chunk", [1, 5, 10])
async def test_a_stream_ends_whatever_its_lead_and_chunk(lead: float | None, chunk: int) -> None:
    host = SessionHost()
    session = host.open(CountingSource(frames=23))
    cursor = host.attach(session, "a", lead=lead)
    woken = asyncio.Event()

    class Reader:
        def wake(self) -> None:
            woken.set()

        def stop(self, reason: TenutoError) -> None:
            raise AssertionError(reason)

    host.serve(session, cursor, Reader())
    delivery = Delivery(
        Plan(host, session, cursor, Records(session, cursor)), frames_per_chunk=chunk
    )
    decoder = RecordDecoder()
    records = []
    async with asyncio.timeout(5):
        while delivery.state is DeliveryState.OPEN:
            woken.clear()
            data = delivery.pull(10)
            records += decoder.feed(data)
            if not data:
                await woken.wait()
    assert isinstance(records[0], Format)
    assert records[0].chunk_frames == min(chunk, int((lead or 1) / 0.02))
    assert [r.sequence for r in records if isinstance(r, Frame)] == list(range(23))
    assert records[-1] == End(23, 23 * 320)
    assert delivery.state is DeliveryState.COMPLETE
    assert delivery.pull(10) == b""
    await host.close()


async def test_a_stalled_listener_holds_an_unpaced_one_for_a_while_only() -> None:
    """Room that comes by time alone is noticed by the tick."""
    host = SessionHost()
    session = host.open(CountingSource(frames=2000))
    stalled = host.attach(session, "stalled", lead=0.2)

    class Reader:
        def wake(self) -> None:
            pass

        def stop(self, reason: TenutoError) -> None:
            pass

    host.serve(session, stalled, Reader())
    while not host.take(session, stalled, 5):
        await asyncio.sleep(0.01)
    eager = host.attach(session, "eager", lead=None)
    host.serve(session, eager, Reader())
    got = 0
    async with asyncio.timeout(10):
        while got < 2000:
            got += len(host.take(session, eager, 100))
            host.confirm(session, eager, eager.next)
            await asyncio.sleep(0)
    assert session.end == 2000
    assert host.take(session, stalled, 5) == []
    assert stalled.departure is not None
    await host.close()


async def test_silence_is_filled_with_signs_of_life_save_while_paused() -> None:
    host = SessionHost()
    session = host.open(CountingSource(frames=5, first_delay=600))
    cursor = host.attach(session, "a")
    delivery = Delivery(Plan(host, session, cursor, Records(session, cursor)), frames_per_chunk=1)
    assert isinstance(RecordDecoder().feed(delivery.pull(1))[0], Format)
    said = b""
    for _ in range(50):
        await asyncio.sleep(0.02)
        said += delivery.pull(1)
    assert set(said) == {0}
    assert 3 <= len(said) <= 5
    host.pause(session)
    assert not delivery.waits()
    assert words(delivery.pull(1)) == ["paused"]
    await asyncio.sleep(0.3)
    assert delivery.pull(1) == b""
    host.resume(session)
    assert not delivery.waits()
    assert words(delivery.pull(1)) == ["resumed"]
    await host.close()


def words(data: bytes) -> list[str]:
    told = [
        json.loads(each.json) for each in RecordDecoder().feed(data) if isinstance(each, Notice)
    ]
    assert all(0 < each["expires_in"] <= 1800 for each in told if each["code"] == "paused")
    return [each["code"] for each in told]


@pytest.mark.parametrize("encoding", [Records, Wav, L16])
async def test_who_attaches_to_a_paused_session_is_told_in_records(
    encoding: type[Records | Wav | L16],
) -> None:
    host = SessionHost()
    session = host.open(CountingSource(frames=5))
    host.pause(session)
    cursor = host.attach(session, "a")
    delivery = Delivery(Plan(host, session, cursor, encoding(session, cursor)), frames_per_chunk=1)
    begin = delivery.pull(1)
    if encoding is Records:
        announced, *_ = RecordDecoder().feed(begin)
        assert isinstance(announced, Format)
        assert words(begin) == ["paused"]
    assert delivery.pull(1) == b""
    await host.close()


async def test_who_has_all_that_there_is_is_told_so_between_frames() -> None:
    """A source slower than real time is not to be taken for a path that is."""
    host = SessionHost()
    session = host.open(CountingSource(frames=40, delay=0.03))
    cursor = host.attach(session, "a")
    delivery = Delivery(Plan(host, session, cursor, Records(session, cursor)), frames_per_chunk=1)
    said = []
    async with asyncio.timeout(10):
        while delivery.state is DeliveryState.OPEN:
            said.append(delivery.pull(5))
            await asyncio.sleep(0.02)
    both = [data for data in said if data.endswith(b"\x00") and len(data) > 600]
    assert 3 <= len(both) <= 8
    await host.close()


@pytest.mark.parametrize("chunk", [1, 5])
async def test_a_delivery_tells_when_it_would_give_nothing(chunk: int) -> None:
    host = SessionHost()
    session = host.open(CountingSource())
    cursor = host.attach(session, "a", lead=0.2)
    delivery = Delivery(
        Plan(host, session, cursor, Records(session, cursor)), frames_per_chunk=chunk
    )
    assert not delivery.waits()
    async with asyncio.timeout(5):
        while not delivery.pull(10) or delivery.silent:
            await asyncio.sleep(0.001)
        waited = 0
        while cursor.next < 60:
            if delivery.waits():
                waited += 1
                assert session.due(cursor, host.beat) < chunk
                assert delivery.pull(10) == b""
            else:
                delivery.pull(10)
            await asyncio.sleep(0.002)
        assert waited > 0
        # Whatever must be said is not waited with.
        while not delivery.waits():
            delivery.pull(10)
            await asyncio.sleep(0.001)
    host.expire(session)
    assert not delivery.waits()
    delivery.pull(10)
    assert delivery.state is DeliveryState.BROKEN
    assert not delivery.waits()
    await host.close()


def test_a_listener_that_was_told_of_a_format_without_frames_is_told_of_the_next() -> None:
    """The source changes its mind between the listener's FORMAT and the first frame."""
    mono, stereo, fast = AudioFormat(16000), AudioFormat(16000, 2), AudioFormat(48000)
    for changes in ([stereo], [stereo, mono], [stereo, fast], [fast, mono, stereo, fast]):
        session = Session("s" * 32, mono, 0.0)
        for number, audio in enumerate(changes):
            records = Records(session, cursor := session.attach("a", 0.0, lead=None))
            decoder = RecordDecoder()
            decoder.feed(records.begin(1))
            if number == len(changes) - 1:
                session.reformat(audio)
                session.append(Piece(bytes(audio.frame_size), audio.samples_per_frame))
                found = decoder.feed(records.frames(session.take(cursor, 0.0, 1)))
                assert isinstance(found[0], Format)
                assert found[0].audio == audio
                assert isinstance(found[1], Frame)
            session.reformat(audio)
    session = Session("s" * 32, mono, 0.0)
    session.append(Piece(bytes(640), 320))
    session.reformat(stereo)
    late = session.attach("late", 0.0, start=1, lead=None)
    records, decoder = Records(session, late), RecordDecoder()
    decoder.feed(records.begin(1))
    session.reformat(mono)  # the span of one frame ago goes on
    session.append(Piece(bytes(640), 320))
    found = decoder.feed(records.frames(session.take(late, 0.0, 1)))
    assert [type(record) for record in found] == [Format, Frame]
    assert isinstance(found[0], Format)
    assert found[0].audio == mono
