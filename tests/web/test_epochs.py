"""What a delivery says of epochs, places in the text and what was left out; without a door."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest

from tenuto.errors import ErrorCode, RequestError
from tenuto.host import SessionHost
from tenuto.media import AudioFormat, Frame, Piece
from tenuto.session import Cursor, Departure, Session
from tenuto.sources import CountingSource
from tenuto.sources.base import Mark
from tenuto.web import Delivery, DeliveryState, Plan
from tenuto.web.encodings import L16, Records, Wav
from tenuto.wire import Format, Gap, Notice, Record, RecordDecoder
from tests.support.virtualtime import run_in_virtual_time

STEREO = AudioFormat(48_000, 2)


class Spoken:
    """A word every ten frames."""

    kind = "spoken"
    format = AudioFormat()
    pausable = True
    patience: float | None = None

    async def stream(self) -> AsyncGenerator[bytes | Mark | AudioFormat, None]:
        for word in range(1000):
            yield Mark(word)
            yield bytes(6400)


def deliver(host: SessionHost, session: Session, cursor: Cursor) -> Delivery:
    return Delivery(
        Plan(host, session, cursor, Records(session, cursor)), frames_per_chunk=1, confirms=True
    )


def facts(records: list[Record]) -> dict[str, object]:
    notice = records[-1]
    assert isinstance(notice, Notice)
    value: dict[str, object] = json.loads(notice.json)
    return value


def test_a_notice_says_where_in_the_text_to_go_on() -> None:
    async def main() -> None:
        host = SessionHost()
        session = host.open(Spoken())
        delivery = deliver(host, session, host.attach(session, "a", lead=None))
        decoder = RecordDecoder()
        await asyncio.sleep(0.1)
        decoder.feed(delivery.pull(13))
        said = facts(
            decoder.feed(delivery.break_off(RequestError(ErrorCode.DRAINING, "about to stop")))
        )
        resume = {"session": session.id, "epoch": 0, "from": 13, "text_offset": 1}
        assert said["resume"] == resume
        await host.close()

    run_in_virtual_time(main())


def test_a_listener_that_fell_out_is_told_what_is_left_and_what_is_said_there() -> None:
    async def main() -> None:
        host = SessionHost()
        session = host.open(Spoken())
        slow, fast = host.attach(session, "slow"), host.attach(session, "fast", lead=None)
        delivery, decoder = deliver(host, session, slow), RecordDecoder()
        await asyncio.sleep(0.1)
        decoder.feed(delivery.pull(1))
        while slow.departure is not Departure.FELL_BEHIND:
            await asyncio.sleep(0.02)
            host.take(session, fast, 100)
            host.confirm(session, fast, fast.next)
            if session.first > 100:
                said = decoder.feed(delivery.pull(1))
        told = facts(said)
        assert (told["code"], told["first"]) == ("too-slow", session.first)
        with pytest.raises(RequestError) as caught:
            host.attach(session, "slow", start=slow.next, epoch=0)
        assert caught.value.detail["text_offset"] == slow.next // 10
        await host.close()

    run_in_virtual_time(main())


def test_a_flush_is_told_at_once_and_frames_of_the_new_epoch_wait_for_no_company() -> None:
    async def main() -> None:
        host = SessionHost()
        session = host.open(CountingSource())
        cursor = host.attach(session, "a", lead=0.5)
        delivery = Delivery(
            Plan(host, session, cursor, Records(session, cursor)), frames_per_chunk=5
        )
        decoder = RecordDecoder()
        await asyncio.sleep(0.1)
        decoder.feed(delivery.pull(10))
        while not delivery.waits():
            decoder.feed(delivery.pull(10))
        host.flush(session, CountingSource(frames=1, first_delay=1.0))
        assert not delivery.waits()
        (told,) = decoder.feed(delivery.pull(10))
        assert isinstance(told, Format)
        assert (told.epoch, told.epoch_base, told.sequence) == (1, session.base, session.base)
        host.flush(session)
        host.flush(session, CountingSource(frames=1))
        await asyncio.sleep(0.1)
        told, frame, *_ = decoder.feed(delivery.pull(10))
        assert isinstance(told, Format)
        assert told.epoch == 3
        assert isinstance(frame, Frame)
        assert frame.sequence == session.base
        assert delivery.state is DeliveryState.COMPLETE
        await host.close()

    run_in_virtual_time(main())


def test_one_that_attached_before_a_flush_and_begins_behind_it_begins_with_the_new_epoch() -> None:
    session = Session("s", AudioFormat(), 0.0)
    session.append(Piece(bytes(640), 320))
    records = Records(session, session.attach("a", 0.0))
    session.flush(0.0, STEREO)
    (told,) = RecordDecoder().feed(records.begin(1))
    assert isinstance(told, Format)
    assert (told.epoch, told.epoch_base, told.sequence, told.audio) == (1, 1, 1, STEREO)


def test_what_a_live_listener_left_out_below_its_place_is_a_gap_from_there() -> None:
    session = Session("s", AudioFormat(), 0.0, live=True)
    for _ in range(1000):
        session.append(Piece(bytes(640), 320))
    cursor = session.attach("a", 0.0, start=7, lead=0.2)
    records = Records(session, cursor)
    decoder = RecordDecoder()
    (begin,) = decoder.feed(records.begin(1))
    assert isinstance(begin, Format)
    assert begin.sequence == 7
    gap, frame, *_ = decoder.feed(records.frames(session.take(cursor, 0.0, 10)))
    assert gap == Gap(7, 983)
    assert isinstance(frame, Frame)
    assert frame.sequence == 990


@pytest.mark.parametrize("plain", [Wav, L16])
def test_plain_players_go_on_with_the_new_audio_in_the_format_they_know(
    plain: type[Wav] | type[L16],
) -> None:
    session = Session("s", AudioFormat(), 0.0)
    session.append(Piece(bytes(640), 320))
    cursor = session.attach("a", 0.0, lead=None)
    encoding = plain(session, cursor)
    head = len(encoding.begin(1))
    assert head == (44 if plain is Wav else 0)
    assert len(encoding.frames(session.take(cursor, 0.0, 1))) == 640
    session.flush(0.0, STEREO)
    assert encoding.flushed() == b""
    for _ in range(10):
        session.append(Piece(bytes(3840), 960))
    said = encoding.frames(session.take(cursor, 0.1, 10)) + encoding.end()
    assert len(said) == 10 * 640
