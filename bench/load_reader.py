"""What one listener of a load heard: which frame was complete when, and what was wrong."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import pairwise

from tenuto.wire.varint import decode_varint

__all__ = ["Listener"]

_SIZE = 640
_HEADER = struct.Struct(">BHH")
_INDEX = struct.Struct("<I4s")
_TAG = b"\xf1\xf3\xf5\xf7"
_FRAME = 2
_WHOLE = _HEADER.size + _SIZE
_LENGTH = 0x4000 | (_SIZE + 2)
"""The two-byte varint of a whole frame's body."""


@dataclass(slots=True)
class Listener:
    """Instants are those of `time.monotonic`; frames come from a counting source."""

    began: float = 0.0
    connected: float = 0.0
    """The handshake is finished as the client sees it, and the request sent."""
    times: list[float] = field(default_factory=list)
    """When the bytes of each frame were complete."""
    indexes: list[int] = field(default_factory=list)
    trouble: str = ""
    missing: int = 0
    duplicates: int = 0
    _rest: bytes = b""
    next: int = 0
    """The index of the frame that is to come."""

    def feed(self, data: bytes, now: float) -> None:
        """Bytes of the body. Frames are taken apart here, all other records skipped."""
        if self._rest:
            data = self._rest + data
        position, end = 0, len(data)
        while end - position >= _WHOLE:
            kind, length, _ = _HEADER.unpack_from(data, position)
            if kind == _FRAME and length == _LENGTH:
                self._heard(data, position + _HEADER.size, now)
                position += _WHOLE
            elif (after := _skip(data, position)) <= end:
                position = after
            else:
                break
        # Less than a frame may still be a record of another kind, which will be skipped later.
        self._rest = data[position:]

    def fail(self, trouble: str) -> None:
        """The first reason counts."""
        self.trouble = self.trouble or trouble

    def gaps(self, since: float, group: int) -> list[float]:
        """Between the completions of consecutive groups that were complete after `since`."""
        return [after - before for before, after in pairwise(self._completions(since, group)[0])]

    def lateness(self, since: float, group: int) -> list[float]:
        """Of each group, against a schedule that its least delayed one sets."""
        times, indexes = self._completions(since, group)
        delays = [at - 0.020 * index for at, index in zip(times, indexes, strict=True)]
        least = min(delays, default=0.0)
        return [delay - least for delay in delays]

    def _completions(self, since: float, group: int) -> tuple[list[float], list[int]]:
        steady = next((n for n, at in enumerate(self.times) if at >= since), len(self.times))
        times, indexes = self.times[steady:], self.indexes[steady:]
        if group == 1 or len(times) < 2 * group:
            return times, indexes
        # Nobody says where groups begin: where the longest waits are.
        waits = [0.0] * group
        for index, (before, after) in zip(indexes[1:], pairwise(times), strict=True):
            waits[index % group] += after - before
        last = (waits.index(max(waits)) - 1) % group
        chosen = [n for n, index in enumerate(indexes) if index % group == last]
        return [times[n] for n in chosen], [indexes[n] for n in chosen]

    def _heard(self, data: bytes, position: int, now: float) -> None:
        index, tag = _INDEX.unpack_from(data, position)
        if tag != _TAG:
            self.fail("a payload that is none of a counting source")
        elif index < self.next:
            self.duplicates += 1
        else:
            self.missing += index - self.next
            self.next = index + 1
            self.times.append(now)
            self.indexes.append(index)


def _skip(data: bytes, position: int) -> int:
    """Behind the record that begins here, of which more than the length has come."""
    if data[position] == 0:
        return position + 1
    header = decode_varint(data, position + 1)
    assert header is not None
    length, begin = header
    return begin + length
