"""A listener who comes back still plays what it has: it gets no second lead on top of that."""

from __future__ import annotations

from tenuto.media import FRAME_DURATION, AudioFormat, Piece
from tenuto.session import Cursor, Session, SessionLimits
from tenuto.session.pace import PlayoutEstimate
from tenuto.session.playouts import Playouts

TINY = AudioFormat(50, 1)
LEAD = 0.4
AHEAD = 20


class Bed:
    """A session that is driven tick by tick; everything sent arrives."""

    def __init__(self) -> None:
        self.session = Session("s", TINY, 0.0)
        self.now = 0.0

    def attach(self, start: int, listener: str = "a") -> Cursor:
        return self.session.attach(listener, self.now, start=start, lead=LEAD)

    def run(self, seconds: float, *cursors: Cursor) -> None:
        for _ in range(round(seconds / FRAME_DURATION)):
            self.now += FRAME_DURATION
            while self.session.wants_more(self.now):
                self.session.append(Piece(b"ab", 1))
            for cursor in cursors:
                self.session.take(cursor, self.now, 100)
                self.session.confirm(cursor, cursor.next, self.now)


def test_many_resumes_give_one_lead() -> None:
    bed = Bed()
    cursor = bed.attach(0)
    for _ in range(10):
        bed.run(0.4, cursor)
        bed.session.detach(cursor, bed.now)
        cursor = bed.attach(cursor.next)
    bed.run(0.4, cursor)
    assert bed.now / FRAME_DURATION + AHEAD - 2 <= cursor.next <= bed.now / FRAME_DURATION + AHEAD


def test_one_that_moves_to_another_connection_keeps_its_pace() -> None:
    bed = Bed()
    old = bed.attach(0)
    bed.run(2.0, old)
    new = bed.attach(old.next)
    assert bed.session.due(new, bed.now) == 0
    bed.run(0.2, new)
    assert new.next == old.next + 10


def test_what_was_sent_and_did_not_come_is_sent_again_at_once() -> None:
    bed = Bed()
    old = bed.attach(0)
    bed.run(2.0, old)
    lost = old.next - 15
    bed.session.detach(old, bed.now)
    new = bed.attach(lost)
    assert len(bed.session.take(new, bed.now, 100)) == 10, (
        "as much as may be caught up with at once"
    )
    bed.run(0.04, new)
    assert new.next == old.next + 2


def test_one_that_has_played_out_begins_with_a_whole_lead() -> None:
    bed = Bed()
    old = bed.attach(0)
    bed.run(1.0, old)
    bed.session.detach(old, bed.now)
    bed.run(5.0)
    new = bed.attach(old.next)
    bed.run(0.1, new)
    assert AHEAD <= new.next - old.next <= AHEAD + 5


def test_one_that_goes_back_begins_anew() -> None:
    bed = Bed()
    old = bed.attach(0)
    bed.run(2.0, old)
    bed.session.progress("a", 80, bed.now)
    bed.session.detach(old, bed.now)
    new = bed.attach(10)
    bed.run(0.02, new)
    assert new.next > 10


def test_another_listener_has_a_lead_of_its_own() -> None:
    bed = Bed()
    old = bed.attach(0)
    bed.run(2.0, old)
    new = bed.attach(old.next - 20, "b")
    bed.run(0.1, new)
    assert new.next >= old.next + 2


def test_a_flush_ends_what_was_played() -> None:
    bed = Bed()
    old = bed.attach(0)
    bed.run(2.0, old)
    bed.session.detach(old, bed.now)
    bed.session.flush(bed.now, TINY)
    new = bed.attach(bed.session.base)
    bed.run(0.1, new)
    assert new.next - bed.session.base >= AHEAD


def test_only_the_last_who_left_are_remembered() -> None:
    playouts = Playouts(2)
    paces = [PlayoutEstimate(number, 0.0) for number in range(3)]
    for number in (0, 1, 0, 2):
        playouts.left(str(number), paces[number])
    assert (playouts.of("0"), playouts.of("1"), playouts.of("2")) == (paces[0], None, paces[2])
    assert len(playouts) == 2
    session = Session("s", TINY, 0.0, limits=SessionLimits(max_listeners=2))
    for number in range(9):
        session.detach(session.attach(str(number), 0.0), 0.0)
    assert len(session._playouts) == 4
