"""The jitter buffer as docs/playout.md tells it, written from that page and from nothing else.

Slow and plain: what can be found by walking the past is found so. Its constants are those of the
page's table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["COUNTERS", "ReferenceBuffer", "constants"]

_PAGE = Path(__file__).parents[2] / "docs" / "playout.md"


def constants() -> dict[str, int]:
    """The whole numbers of the page's table: those of the buffer."""
    rows = re.findall(r"^\| `(\w+)` \| (-?[\d,]+) \|", _PAGE.read_text("utf-8"), re.MULTILINE)
    return {name: int(value.replace(",", "")) for name, value in rows}


C = constants()
COUNTERS = ["received", "played", "duplicates", "late", "overflowed", "concealed", "skipped"]
COUNTERS += ["flushed", "underruns", "waited"]
FRAME = C["FRAME_TICKS"]
SECOND = C["TICKS_PER_SECOND"]


@dataclass(frozen=True)
class Arrival:
    """One frame observed."""

    time: int
    offset: int
    delay: int


@dataclass
class Interval:
    """The one that is open, with all its frames."""

    opened: int
    number: int
    """How many came before it."""
    weight: int
    arrivals: list[Arrival] = field(default_factory=list)

    @property
    def cell(self) -> int:
        """That of its spread, which only grows."""
        delays = [arrival.delay for arrival in self.arrivals]
        spread = max(delays) - (min(delays) if min(delays) >= C["_SHIFT"] else 0)
        return min(spread // C["CELL_TICKS"], C["CELLS"] - 1)

    @property
    def least(self) -> int:
        return min(arrival.offset for arrival in self.arrivals)


@dataclass
class Anchor:
    """What mode `gapless` keeps to."""

    settled: int
    """The time from which the source's drift is told from the rest."""
    bases: dict[int, int] = field(default_factory=dict)
    """The least base of the turns in each cell of time, since the wait."""
    least: int | None = None
    value: int = 0
    ceiling: int = 0
    followed: int = 0
    """The time of the last turn that did."""

    def follow(self, now: int, base: int, position: int) -> None:
        begins = self.least is None
        before = self.least
        cell = now // C["_WINDOW_CELL"]
        self.bases[cell] = min(base, self.bases.get(cell, base))
        for old in [one for one in self.bases if one <= cell - C["_WINDOW_CELLS"]]:
            del self.bases[old]
        self.least = min(self.bases.values())
        self.followed = now
        moved = self.least - (self.least if before is None else before)
        if begins or now < self.settled:
            self.value = self.ceiling = position - self.least
        elif abs(moved) > C["_JUMP"]:
            self.value = min(self.value - moved, self.ceiling)

    def error(self, position: int) -> int:
        if self.least is None or self.followed < self.settled:
            return 0
        return position - self.least - self.value


class ReferenceBuffer:
    """Outcomes are tuples: what, and for a frame its sequence and the places skipped before it."""

    def __init__(self, start: int, mode: str, drift: bool, capacity: int) -> None:
        self.mode, self.drift, self.capacity = mode, drift, capacity
        self.next = start
        self.newest = start - 1
        self.held: set[int] = set()
        self.given_up: list[int] = []
        self.end: int | None = None
        self.filling = True
        self.dry = False
        self.owed = 0
        self.pause_at: int | None = None
        self.anew_from: int | None = None
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.offsets: list[tuple[int, int]] = []
        """Those that the base is the least of, each with its time."""
        self.base: int | None = None
        self.alone = True
        """Whether the next frame is compared with none before it."""
        self.anchor: Anchor | None = None
        self.followed: int | None = None
        """The time of the last turn that followed the drift."""
        # The histogram: the intervals that are closed, and the one that is not.
        self.cells = [0] * C["CELLS"]
        self.interval: Interval | None = None
        self.upper_edge = 0
        # The target, unrolled: the greatest of what was wanted at each arrival, less all it could
        # have fallen by since. Kept is (wanted + fallen until then), to which nothing is ever done.
        self.fallen = 0
        self.wanted = C["_START"]

    # Calls

    def insert(self, sequence: int, now: float) -> bool:
        self.counters["received"] += 1
        if sequence < self.next:
            if sequence not in self.given_up:
                self.counters["duplicates"] += 1
                return False
            self.given_up.remove(sequence)
            self.counters["late"] += 1
            self._observe(sequence, now)
            return False
        if sequence in self.held:
            self.counters["duplicates"] += 1
            return False
        if sequence >= self.next + self.capacity:
            absurd = sequence - self.next > C["_FARTHEST"]
            if self.held or self.end is not None or absurd:
                self.counters["overflowed"] += 1
                return False
            self.counters["skipped"] += sequence - self.next
            self.next = sequence
        self.held.add(sequence)
        self.newest = max(self.newest, sequence)
        if self.anew_from is not None and sequence >= self.anew_from:
            self._end_pause()
        self._observe(sequence, now)
        return True

    def finish(self, end: int) -> None:
        self.end = min(end, self.next + self.depth + self.capacity)
        self.pause_at = self.anew_from = None

    def flush(self, base: int) -> None:
        if base <= self.next:
            return
        kept = {sequence for sequence in self.held if sequence >= base}
        self.counters["flushed"] += len(self.held) - len(kept)
        self.held = kept
        self.next = base
        self.newest = max([*kept, base - 1])
        self.given_up = []
        self.end = None
        self.filling, self.dry, self.owed = True, False, 0

    def pause(self, at: int) -> None:
        if self.end is None and at >= self.next + self.depth:
            self.pause_at = self.anew_from = at

    def resume(self) -> None:
        self.pause_at = None

    def pull(self, seconds: float) -> tuple[str, int, int]:
        now = _ticks(seconds)
        if self.end is not None and self.next >= self.end:
            return "ended", 0, 0
        at = self.pause_at
        if at is not None and not self.held and self.next + self.owed >= at:
            self._skip_to(at)
            self._begin_arrivals_anew()
            self.filling, self.dry, self.owed = True, False, 0
            return "paused", 0, 0
        if self.filling and not self._may_go_on(now):
            return self._wait()
        skipped = self._end_wait() if self.filling else 0
        if self.end is not None and self.next >= self.end:
            return "ended", 0, 0
        if not self.held and self.end is None:
            self.counters["underruns"] += 1
            self.filling = self.dry = True
            return self._wait()
        self._follow(now)
        sequence = self.next
        self.next += 1
        if sequence in self.held:
            self.held.remove(sequence)
            self.counters["played"] += 1
            return "played", sequence, skipped
        self._give_up(sequence)
        self.counters["concealed"] += 1
        return "concealed", sequence, skipped

    # Figures

    @property
    def depth(self) -> int:
        return max(0, self.newest + 1 - self.next)

    def figures(self, seconds: float) -> dict[str, object]:
        """All that is to be compared, at this time."""
        now = _ticks(seconds)
        return {
            "next": self.next,
            "depth": self.depth,
            "filling": self.filling,
            "target": self._target() / SECOND,
            "quantile": self.upper_edge / SECOND,
            "base": None if self.base is None else self.base / SECOND,
            "delay": self._delay(now) / SECOND,
            "excess": self._excess(now) / SECOND,
            "counters": self.counters,
        }

    def _position(self, now: int) -> int:
        return now - self.next * FRAME

    def _delay(self, now: int) -> int:
        return 0 if self.base is None else self._position(now) - self.base

    def _target(self) -> int:
        return self.wanted - self.fallen

    def _excess(self, now: int) -> int:
        if self.filling or self.end is not None:
            return 0
        error, band = 0, 0
        if self.mode == "live":
            error = self._delay(now) - self._target() - C["_LIVE_MARGIN"]
            band = C["_LIVE_BAND"]
        elif self.drift and self.anchor is not None:
            error = self.anchor.error(self._position(now))
            band = C["_DRIFT_BAND"]
        return error if abs(error) > band else 0

    # A turn's parts

    def _may_go_on(self, now: int) -> bool:
        if self.end is not None:
            return True
        if not self.held or self._delay(now) < self._target():
            return False
        if self.pause_at is not None or self.owed < C["_LONG_WAIT"]:
            return True
        return (self.depth - 1) * FRAME >= min(self._target(), C["_HELD"])

    def _wait(self) -> tuple[str, int, int]:
        if self.dry:
            self.counters["waited"] += 1
            self.owed += 1
        return "waiting", 0, 0

    def _end_wait(self) -> int:
        self.filling = False
        skipped = 0
        while self.held and skipped < self.owed and self.next not in self.held:
            if self.end is not None and self.next >= self.end:
                break
            self._give_up(self.next)
            self.next += 1
            skipped += 1
        self.counters["skipped"] += skipped
        self.owed = 0
        self.anchor = None
        return skipped

    def _end_pause(self) -> None:
        self.pause_at = self.anew_from = None
        self._begin_arrivals_anew()
        if self.filling and not self.dry:
            self._skip_to(min(self.held))

    def _skip_to(self, sequence: int) -> None:
        while self.next < sequence:
            self._give_up(self.next)
            self.next += 1
            self.counters["skipped"] += 1

    def _begin_arrivals_anew(self) -> None:
        self.offsets = []
        self.base = None
        self.alone = True

    def _give_up(self, sequence: int) -> None:
        self.given_up = [*self.given_up, sequence][-C["_REMEMBERED"] :]

    def _follow(self, now: int) -> None:
        if self.mode != "gapless" or not self.drift or self.base is None:
            return
        time = now if self.followed is None else max(now, self.followed)
        self.followed = time
        if self.anchor is None:
            self.anchor = Anchor(time + C["_SETTLING"])
        self.anchor.follow(time, self.base, self._position(now))

    # An arrival's parts

    def _observe(self, sequence: int, seconds: float) -> None:
        time, last = _ticks(seconds), self.interval
        passed = 0
        if last is not None:
            time = max(time, last.arrivals[-1].time)
            passed = time - last.arrivals[-1].time
        offset = time - sequence * FRAME
        opens = self.alone or last is None
        if last is not None:
            opens = opens or time - last.opened >= C["_INTERVAL"] or passed >= C["_GAP"]
        self.alone = False
        base = self._measure(time, passed, last if opens else None)
        delay = 0 if base is None else max(0, offset - base)
        self.offsets.append((time, offset))
        self.base = offset if base is None else min(base, offset)
        interval = self._open(time, last) if last is None or opens else last
        interval.arrivals.append(Arrival(time, offset, delay))
        self.interval = interval
        self.upper_edge = (self._quantile(interval) + 1) * C["CELL_TICKS"]
        self.fallen += passed * C["_FALL"] // C["_FALL_TICKS"]
        wanted = min(max(self.upper_edge, C["_FLOOR"]), C["_CAP"])
        self.wanted = max(self.wanted, wanted + self.fallen)

    def _measure(self, time: int, passed: int, closed: Interval | None) -> int | None:
        """The base that the delay of a frame is told by, which may close an interval."""
        if passed > C["_PAUSE"]:
            self.offsets = []
            return None
        oldest = time // C["_BASE_CELL"] - C["_BASE_CELLS"]
        self.offsets = [one for one in self.offsets if one[0] // C["_BASE_CELL"] > oldest]
        base = min((offset for _time, offset in self.offsets), default=None)
        if closed is not None and base is not None and closed.least - base >= C["_SHIFT"]:
            self.offsets = [(time, closed.least)]
            return closed.least
        return base

    def _quantile(self, interval: Interval) -> int:
        cells = list(self.cells)
        cells[interval.cell] += interval.weight
        whole, above = sum(cells), 0
        lowest = C["CELLS"] - 1
        while lowest > 0 and (above + cells[lowest]) * C["_ABOVE"] <= whole:
            above += cells[lowest]
            lowest -= 1
        return lowest

    def _open(self, time: int, last: Interval | None) -> Interval:
        if last is None:
            return Interval(time, 0, C["_FIRST_WEIGHT"])
        self.cells[last.cell] += last.weight
        number = last.number + 1
        if number <= C["_RAMP"]:
            weight = last.weight * (number + 2) // number
        else:
            weight = last.weight * C["_GROWTH"] // C["_SHRINKAGE"]
        if weight >= C["_HEAVY"]:
            cut = 1 << C["_RENORMALISE_BITS"]
            self.cells = [one // cut for one in self.cells]
            weight //= cut
        return Interval(time, number, weight)


def _ticks(seconds: float) -> int:
    return round(seconds * 1_000_000)
