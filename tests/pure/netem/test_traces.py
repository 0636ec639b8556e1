"""Capacity traces of mahimahi's format."""

import pytest

from netem.profile.traces import LONGEST_TRACE, parse_trace
from netem.profile.units import BadValueError


def test_a_trace_is_a_list_of_milliseconds() -> None:
    assert parse_trace("0\n1\n1\n\n 12 \r\n") == (0, 1, 1, 12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no opportunity"),
        ("0\n0\n", "no opportunity"),
        ("1\n-2\n", 'line 2 of the trace holds "-2"'),
        ("1.5\n", 'line 1 of the trace holds "1.5"'),
        ("1\nmillisecond\n", "each line is one time in whole milliseconds"),
        ("²\n", "holds"),
        ("5\n4\n", "line 2 of the trace says 4, after a later one"),
        ("86400001\n", "line 1 of the trace says 86400001, more than a day"),
        ("9" * 400, "line 1 of the trace holds"),
    ],
)
def test_a_bad_trace_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadValueError, match=message):
        parse_trace(text)


def test_a_trace_has_a_bound() -> None:
    assert len(parse_trace("1\n" * LONGEST_TRACE)) == LONGEST_TRACE
    with pytest.raises(BadValueError, match="more than 2,000,000 lines; cut a piece"):
        parse_trace("1\n" * (LONGEST_TRACE + 1))
