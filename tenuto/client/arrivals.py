"""When frames came, written down to be played back to a jitter buffer. Values and text only."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from tenuto.errors import OperatorError

__all__ = [
    "ArrivalEvent",
    "Arrivals",
    "ArrivalsHeader",
    "beyond",
    "event_line",
    "header_line",
    "read_arrivals",
]

VERSION = 1
MAX_LINES = 1_000_000
_SHOWN = 40
_MOST_FRAMES = 100_000
_MOST_SECONDS = 86_400
_MOST_APART = 10_000_000

_KEY = "tenuto_arrivals"
_REMEDY = "record one with tenuto play --record-arrivals FILE"


@dataclass(frozen=True, slots=True)
class ArrivalsHeader:
    """How the recording was made; `lead` is in seconds, None for a listener without pacing."""

    transport: str
    mode: str
    lead: float | None
    chunk_frames: int
    rate: int
    channels: int
    started: str
    """ISO 8601, with the zone."""


@dataclass(frozen=True, slots=True)
class ArrivalEvent:
    """`count` frames from sequence `first` on came at once, `at` seconds from the start."""

    at: float
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A whole recording."""

    header: ArrivalsHeader
    events: tuple[ArrivalEvent, ...]

    def frames(self) -> Iterator[tuple[float, int]]:
        """Every frame's time and sequence, in the order in which they came."""
        for event in self.events:
            for sequence in range(event.first, event.first + event.count):
                yield event.at, sequence


def header_line(header: ArrivalsHeader) -> str:
    """The first line, its newline included."""
    return json.dumps({_KEY: VERSION, **asdict(header)}) + "\n"


def event_line(event: ArrivalEvent) -> str:
    """A line for one event, to the microsecond. Of them a file holds `MAX_LINES` - 1."""
    return f"[{event.at:.6f}, {event.first}, {event.count}]\n"


def beyond(event: ArrivalEvent, first: int) -> str | None:
    """Why a recording whose first line has frame `first` may not hold this; None if it may."""
    last = event.first + event.count - 1
    if event.at > _MOST_SECONDS:
        return f"{event.at} s is more than a day"
    if event.count > _MOST_FRAMES or last >= 1 << 63:
        return f"{event.count:,} frames from {event.first} on are more than come at once"
    for sequence in (event.first, last):
        if abs(sequence - first) > _MOST_APART:
            return f"frame {sequence} lies more than {_MOST_APART:,} from the first one, {first}"
    return None


def read_arrivals(lines: Iterable[str], name: str, *, most: int = MAX_LINES) -> Arrivals:
    """The recording in these lines; `name` is what an error calls it.

    Raises `OperatorError` for anything else, with the number of the line. A last line without
    its newline was cut off in the middle, and is left out.
    """
    header: ArrivalsHeader | None = None
    events: list[ArrivalEvent] = []
    cut = ""
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        if number > most:
            raise _bad(where, f"more than {most:,} lines")
        if cut:
            raise _bad(f"{name}:{number - 1}", f"{_shown(cut)} goes on for too long")
        if header is None:
            header = _header(line, where)
        elif line.endswith("\n"):
            events.append(_event(line, where, events))
        else:
            cut = line
    if header is None:
        raise _bad(name, "empty")
    return Arrivals(header, tuple(events))


def _bad(where: str, what: str) -> OperatorError:
    return OperatorError(f"{where}: {what}", remedy=_REMEDY)


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return repr(text.strip()[:_SHOWN])


def _parsed(line: str, where: str) -> object:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        raise _bad(where, f"{_shown(line)} is no JSON") from None
    return value


def _header(line: str, where: str) -> ArrivalsHeader:
    value = _parsed(line, where)
    if not isinstance(value, dict) or _KEY not in value:
        raise _bad(where, f"no recording of arrivals, it begins with {_shown(line)}")
    if value[_KEY] != VERSION:
        raise _bad(where, f"a recording of version {_shown(value[_KEY])}, not {VERSION}")
    fields = _Fields(value, where)
    return ArrivalsHeader(
        transport=fields.text("transport"),
        mode=fields.text("mode"),
        lead=None if value.get("lead", 0) is None else fields.number("lead"),
        chunk_frames=fields.whole("chunk_frames", 0),
        rate=fields.whole("rate", 1),
        channels=fields.whole("channels", 1),
        started=fields.text("started"),
    )


@dataclass(frozen=True, slots=True)
class _Fields:
    value: dict[str, object]
    where: str

    def text(self, name: str) -> str:
        value = self.value.get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "text")
        return value

    def number(self, name: str) -> float:
        value = _number(self.value.get(name))
        if value is None:
            raise self._wrong(name, "a number from 0 up, or null")
        return value

    def whole(self, name: str, least: int) -> int:
        value = _whole(self.value.get(name), least)
        if value is None:
            raise self._wrong(name, f"a whole number from {least} up")
        return value

    def _wrong(self, name: str, wanted: str) -> OperatorError:
        given = _shown(self.value[name]) if name in self.value else "missing"
        return _bad(self.where, f"{name!r} is {given}, not {wanted}")


def _event(line: str, where: str, before: Sequence[ArrivalEvent]) -> ArrivalEvent:
    value = _parsed(line, where)
    if isinstance(value, list) and len(value) == 3:
        at, first, count = _number(value[0]), _whole(value[1], 0), _whole(value[2], 1)
        if at is not None and first is not None and count is not None:
            if before and at < before[-1].at:
                raise _bad(where, f"{at} s lies before the line above, {before[-1].at} s")
            event = ArrivalEvent(at, first, count)
            trouble = beyond(event, before[0].first if before else first)
            if trouble is not None:
                raise _bad(where, trouble)
            return event
    raise _bad(where, f"{_shown(line)} is no [seconds, first sequence, count]")


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _whole(value: object, least: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if value >= least else None
