"""A source that cannot wait: always given more, and never in the way of the present."""

from __future__ import annotations

import pytest

from tenuto.errors import RequestError
from tenuto.media import AudioFormat, Piece
from tenuto.session import Cursor, Departure, Session

TINY = AudioFormat(50, 1)
WINDOW = 640


def live(frames: int = 0) -> Session:
    session = Session("s", TINY, 0.0, live=True)
    produce(session, frames)
    return session


def produce(session: Session, frames: int) -> None:
    for _ in range(frames):
        session.append(Piece(b"ab", 1))


def take(session: Session, cursor: Cursor, now: float, most: int = 1000) -> list[int]:
    frames = session.take(cursor, now, most)
    session.confirm(cursor, cursor.next, now)
    return [frame.sequence for frame in frames]


def test_it_wants_more_whoever_listens_and_holds_a_window() -> None:
    session = live()
    for now in range(20):
        assert session.wants_more(now)
        produce(session, 50)
    assert len(session._ring) == WINDOW
    cursor = session.attach("a", 20.0)
    session.pause(20.0)
    assert session.wants_more(20.0)
    session.detach(cursor, 20.0)
    session.close(21.0)
    assert not session.wants_more(21.0)


def test_a_finished_or_failed_one_wants_no_more() -> None:
    session = live()
    session.finish()
    assert not session.wants_more(0.0)


@pytest.mark.parametrize(("lead", "start"), [(0.2, 290), (2.0, 200), (None, 290), (30.0, 0)])
def test_a_listener_begins_a_lead_behind_the_newest(lead: float | None, start: int) -> None:
    session = live(300)
    cursor = session.attach("a", 0.0, lead=lead)
    assert cursor.start == max(start, session.first) == cursor.next


def test_it_may_begin_at_any_frame_that_is_held() -> None:
    session = live(1000)
    assert session.attach("a", 0.0, start=session.first).start == 1000 - WINDOW + 20
    with pytest.raises(RequestError, match="no longer held"):
        session.attach("b", 0.0, start=300, live=False)


def test_one_that_falls_out_goes_on_near_the_newest_and_is_counted() -> None:
    session = live(100)
    cursor = session.attach("a", 0.0, lead=0.2)
    assert take(session, cursor, 0.0) == list(range(90, 100))
    produce(session, 2000)
    assert take(session, cursor, 40.0) == list(range(2090, 2100))
    assert session.dropped == 1990
    assert cursor.departure is None
    produce(session, 1)
    assert take(session, cursor, 40.02) == [2100]
    assert session.dropped == 1990


def test_one_that_never_took_a_frame_still_supersedes_after_a_jump() -> None:
    session = live(100)
    older = session.attach("a", 0.0, lead=0.2)
    newer = session.attach("a", 0.0, lead=0.2)
    produce(session, 2000)
    assert take(session, newer, 40.0) == list(range(2090, 2100))
    assert older.departure is Departure.SUPERSEDED
    assert session.dropped == 2000


def test_a_pausable_one_still_lets_it_depart() -> None:
    session = Session("s", TINY, 0.0)
    cursor = session.attach("a", 0.0, lead=0.2)
    other = session.attach("b", 0.0, lead=None)
    now = 0.0
    while session.end < 2000:
        while session.wants_more(now):
            produce(session, 1)
        take(session, other, now)
        now += 0.1
    assert take(session, cursor, now) == []
    assert cursor.departure is Departure.FELL_BEHIND
    assert session.dropped == 0
