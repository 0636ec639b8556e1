"""Capacity traces in the text format of mahimahi: one delivery opportunity a line, in ms."""

from typing import Final

from netem.profile.units import BadValueError, quoted

__all__ = ["LONGEST_TRACE", "parse_trace"]

LONGEST_TRACE: Final = 2_000_000
"""Opportunities: at 1,500 bytes each, 4 minutes of 100 Mbit/s."""
LATEST: Final = 86_400_000
"""Milliseconds: a day."""


def parse_trace(text: str) -> tuple[int, ...]:
    """The opportunities in milliseconds since the start, never falling. Raises `BadValueError`."""
    if text.count("\n") > LONGEST_TRACE:
        raise BadValueError(
            f"the trace has more than {LONGEST_TRACE:,} lines", "cut a piece of it out"
        )
    opportunities: list[int] = []
    last = 0
    for number, line in enumerate(text.splitlines(), 1):
        word = line.strip()
        if not word:
            continue
        if not (word.isascii() and word.isdigit() and len(word) <= len(str(LATEST))):
            raise BadValueError(
                f"line {number} of the trace holds {quoted(word)}",
                "each line is one time in whole milliseconds, at which 1,500 bytes may leave",
            )
        time = int(word)
        if not last <= time <= LATEST:
            why = "after a later one" if time < last else "more than a day"
            raise BadValueError(
                f"line {number} of the trace says {time}, {why}", "times must not fall"
            )
        opportunities.append(time)
        last = time
    if not last:
        raise BadValueError(
            "the trace has no opportunity after the first millisecond",
            "its last line is its period, and must be above 0",
        )
    return tuple(opportunities)
