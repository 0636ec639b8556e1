"""Which frame is of which format, and a session that changes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.media import AudioFormat, Framer, Piece
from tenuto.session import Formats, Session

A, B, C = AudioFormat(16000, 1), AudioFormat(48000, 2), AudioFormat(8000, 1)


def test_a_session_without_changes_has_one_span() -> None:
    formats = Formats(A, 7)
    formats.change(9, A)
    assert len(formats) == 1
    assert formats.at(7) is formats.at(100) is formats.at(0) is formats.newest
    assert formats.newest.id == 0
    assert formats.largest == A.frame_size


def test_a_change_holds_from_its_frame_on() -> None:
    formats = Formats(A, 0)
    formats.change(10, B)
    formats.change(20, C)
    assert [formats.at(n).audio for n in (0, 9, 10, 19, 20)] == [A, A, B, B, C]
    assert [formats.at(n).id for n in (0, 10, 20)] == [0, 1, 2]
    assert formats.largest == B.frame_size


def test_a_format_that_no_frame_has_leaves_no_trace() -> None:
    formats = Formats(A, 0)
    formats.change(10, B)
    formats.change(10, C)
    assert [formats.at(n).audio for n in (9, 10)] == [A, C]
    formats.change(10, A)
    assert len(formats) == 1
    only = Formats(A, 0)
    only.change(0, B)
    assert len(only) == 1
    assert only.at(0).audio == B


def test_spans_go_with_their_last_frame() -> None:
    formats = Formats(A, 0)
    formats.change(10, B)
    formats.forget(9)
    assert len(formats) == 2
    formats.forget(10)
    assert len(formats) == 1
    assert formats.at(3).audio == B


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([A, B, C])), max_size=60))
def test_every_frame_keeps_the_format_it_was_made_in(runs: list[tuple[int, AudioFormat]]) -> None:
    formats, made = Formats(A, 0), list[AudioFormat]()
    for count, audio in runs:
        formats.change(len(made), audio)
        made += [audio] * count
    assert [formats.at(n).audio for n in range(len(made))] == made
    assert len(formats) <= len(made) + 1


def test_a_session_knows_the_format_of_each_frame() -> None:
    session = Session("s", A, 0.0)
    for audio in (A, B, A):
        session.reformat(audio)
        session.append(Piece(b"ab", 1))
    assert [session.format_at(number).audio for number in range(3)] == [A, B, A]
    assert session.newest_format.sequence == 2


@pytest.mark.untraced
def test_a_session_holds_no_more_spans_than_frames() -> None:
    session = Session("s", A, 0.0)
    cursor = session.attach("a", 0.0, lead=None)
    for number in range(5000):
        session.reformat((A, B)[number % 2])
        session.append(Piece(b"ab", 1))
        session.take(cursor, 0.0, 10)
    assert len(session._formats) <= session._ring.capacity
    assert session.format_at(4999).audio == B
    assert session.format_at(4998).audio == A
    assert session.audio == B
    assert session.newest_format.sequence == 4999


def test_larger_frames_count_in_the_footprint() -> None:
    session = Session("s", A, 0.0)
    before = session.footprint
    growth = session.widening(B)
    assert growth == (B.frame_size - A.frame_size) * session._ring.capacity
    session.reformat(B)
    assert session.footprint == before + growth
    assert session.largest_frame == B.frame_size
    assert session.widening(A) == session.widening(B) == 0


def test_the_framer_cuts_what_follows_in_the_new_format() -> None:
    framer = Framer(A)
    framer.mark(1)
    assert [piece.samples for piece in framer.push(bytes(640 + 7))] == [320]
    framer.mark(2)
    tail = framer.reformat(C)
    assert tail is not None
    assert (tail.samples, tail.marks) == (3, (2,))
    assert framer.stray_bytes == 1
    framer.mark(3)
    assert framer.reformat(B) is None
    (piece,) = framer.push(bytes(B.frame_size))
    assert (piece.samples, piece.marks) == (960, (3,))


def test_a_frame_keeps_the_last_marks_of_too_many() -> None:
    framer = Framer(A)
    for offset in range(1000):
        framer.mark(offset)
    (piece,) = framer.push(bytes(640))
    assert piece.marks == tuple(range(936, 1000))
