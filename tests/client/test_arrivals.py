"""Recordings of arrivals: written, read, and refused in one line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.client.arrivals import (
    MAX_LINES,
    ArrivalEvent,
    Arrivals,
    ArrivalsHeader,
    event_line,
    header_line,
    read_arrivals,
)
from tenuto.errors import OperatorError

HEADER = ArrivalsHeader("quic", "live", 0.2, 5, 16_000, 1, "2026-01-02T03:04:05+00:00")

EVENTS = st.integers(0, 2**62).flatmap(
    lambda first: st.lists(
        st.builds(
            ArrivalEvent,
            st.floats(0, 86_400),
            st.integers(first, first + 9_900_000),
            st.integers(1, 100_000),
        ),
        max_size=20,
    )
)


@given(EVENTS, st.one_of(st.none(), st.floats(0, 30)))
def test_what_is_written_is_read(events: list[ArrivalEvent], lead: float | None) -> None:
    header = ArrivalsHeader("tcp", "gapless", lead, 0, 48_000, 2, "2026-01-02T03:04:05+00:00")
    rounded = [ArrivalEvent(round(e.at, 6), e.first, e.count) for e in events]
    rounded.sort(key=lambda event: event.at)
    lines = [header_line(header), *map(event_line, rounded)]
    assert all(line.endswith("\n") and json.loads(line) for line in lines)
    assert read_arrivals(lines, "a.jsonl") == Arrivals(header, tuple(rounded))


def test_frames_one_by_one() -> None:
    arrivals = Arrivals(HEADER, (ArrivalEvent(0.5, 7, 2), ArrivalEvent(0.6, 3, 1)))
    assert list(arrivals.frames()) == [(0.5, 7), (0.5, 8), (0.6, 3)]


def test_a_last_line_that_was_cut_off_is_left_out() -> None:
    lines = [header_line(HEADER), "[0.1, 0, 1]\n", "[0.2, 1,"]
    assert read_arrivals(lines, "a").events == (ArrivalEvent(0.1, 0, 1),)


def changed(**fields: object) -> str:
    return json.dumps({**json.loads(header_line(HEADER)), **fields}) + "\n"


def refused(*lines: str) -> str:
    """The one line that says why, without the remedy."""
    with pytest.raises(OperatorError) as caught:
        read_arrivals(lines, "x")
    answer, found, _ = str(caught.value).partition(
        ". record one with tenuto play --record-arrivals FILE"
    )
    assert found
    assert "\n" not in answer
    assert len(answer) < 150
    return answer


@pytest.mark.parametrize(
    ("first", "answer"),
    [
        ("RIFF....\n", "x:1: 'RIFF....' is no JSON"),
        ("[" * 100_000 + "\n", f"x:1: '{'[' * 40}' is no JSON"),
        ("{}\n", "x:1: no recording of arrivals, it begins with '{}'"),
        ("[1]\n", "x:1: no recording of arrivals, it begins with '[1]'"),
        (changed(tenuto_arrivals=2), "x:1: a recording of version '2', not 1"),
        (changed(rate="fast"), "x:1: 'rate' is 'fast', not a whole number from 1 up"),
        (changed(channels=0), "x:1: 'channels' is '0', not a whole number from 1 up"),
        (changed(chunk_frames=True), "x:1: 'chunk_frames' is 'true', not a whole number from 0 up"),
        (changed(lead=-1), "x:1: 'lead' is '-1', not a number from 0 up, or null"),
        (changed(lead=True), "x:1: 'lead' is 'true', not a number from 0 up, or null"),
        (
            changed(lead=10**400),
            f"x:1: 'lead' is '1{'0' * 39}', not a number from 0 up, or null",
        ),
        (changed(mode=None), "x:1: 'mode' is 'null', not text"),
        ('{"tenuto_arrivals": 1}\n', "x:1: 'transport' is missing, not text"),
    ],
)
def test_a_bad_header(first: str, answer: str) -> None:
    assert refused(first, "[0, 0, 1]\n") == answer


@pytest.mark.parametrize(
    "line",
    ["[1, 2]", "{}", "[0, 1, 0]", "[0, -1, 1]", "[0, 1.5, 1]", "[NaN, 1, 1]", "[0, true, 1]"],
)
def test_a_bad_event(line: str) -> None:
    answer = refused(header_line(HEADER), "[0, 0, 1]\n", f"{line}\n")
    assert answer == f"x:3: {line!r} is no [seconds, first sequence, count]"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("[1e300, 5, 1]", "1e+300 s is more than a day"),
        ("[86400.1, 5, 1]", "86400.1 s is more than a day"),
        ("[0, 1, 100001]", "100,001 frames from 1 on are more than come at once"),
        (f"[0, {2**63}, 1]", f"1 frames from {2**63} on are more than come at once"),
        (
            f"[0, {2**62}, 1]",
            f"frame {2**62} lies more than 10,000,000 from the first one, 0",
        ),
        ("[0, 10000000, 2]", "frame 10000001 lies more than 10,000,000 from the first one, 0"),
    ],
)
def test_an_absurd_event(line: str, answer: str) -> None:
    assert refused(header_line(HEADER), "[0, 0, 1]\n", f"{line}\n") == f"x:3: {answer}"


def test_what_just_fits() -> None:
    lines = [header_line(HEADER), f"[0, {2**62}, 1]\n", f"[86400, {2**62 - 10**7}, 100000]\n"]
    assert len(read_arrivals(lines, "x").events) == 2


def test_time_does_not_go_back() -> None:
    answer = refused(header_line(HEADER), "[1, 1, 1]\n", "[0.5, 2, 1]\n")
    assert answer == "x:3: 0.5 s lies before the line above, 1.0 s"


def test_an_empty_file() -> None:
    assert refused() == "x: empty"


def test_a_line_that_does_not_end_within_the_reader_s_patience() -> None:
    answer = refused(header_line(HEADER), "[0, 0,", " 1]\n")
    assert answer == "x:2: '[0, 0,' goes on for too long"


def test_a_file_has_a_million_lines_at_most() -> None:
    assert MAX_LINES == 1_000_000
    lines = [header_line(HEADER), *["[0, 0, 1]\n"] * 10]
    assert len(read_arrivals(lines[:10], "x", most=10).events) == 9
    with pytest.raises(OperatorError, match=r"^x:11: more than 10 lines"):
        read_arrivals(lines, "x", most=10)
