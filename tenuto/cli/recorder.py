"""Writes down when frames came, while something else plays them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Self

from tenuto.cli.place import check_place, open_place, unwritable
from tenuto.client.arrivals import (
    MAX_LINES,
    ArrivalEvent,
    ArrivalsHeader,
    beyond,
    event_line,
    header_line,
)
from tenuto.errors import OperatorError
from tenuto.media import Frame

__all__ = ["ArrivalRecorder", "check_recording"]

_OPTION = "--record-arrivals"


def check_recording(output: str) -> None:
    """Refuse before anything is asked of a server; an `OperatorError` says why."""
    if output == "-":
        raise OperatorError(
            f"{_OPTION} does not write to standard output", remedy="name a file, such as a.jsonl"
        )
    check_place(output, _OPTION)


class ArrivalRecorder:
    """A file in the form of `tenuto.client.arrivals`; whole after each line.

    What a reader would refuse is not written, nor what a pipe's reader has no room
    for: `dropped` counts it.
    """

    def __init__(
        self,
        output: str,
        header: ArrivalsHeader,
        *,
        most: int = MAX_LINES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._output = output
        self._clock = clock
        self._started = clock()
        self._room = most - 1
        self._first: int | None = None
        self.events = 0
        self.dropped = 0
        # Nothing is buffered here, so that nothing is lost where the process is killed.
        self._descriptor = open_place(output, _OPTION)
        try:
            self._write(header_line(header))
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._descriptor)

    def add(self, frames: Sequence[Frame]) -> None:
        """These came together, in order; a gap among them makes two events of one."""
        at = self._clock() - self._started
        for first, count in _runs(frames):
            event = ArrivalEvent(at, first, count)
            if self._first is None:
                self._first = first
            if self._room <= 0 or beyond(event, self._first) or not self._write(event_line(event)):
                self.dropped += 1
                continue
            self._room -= 1
            self.events += 1

    def _write(self, line: str) -> bool:
        """Whether it was taken: by a pipe that is full a line is not, and not half of it."""
        data = line.encode()
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except BlockingIOError:
            return False
        except OSError as error:
            raise unwritable(self._output, error, _OPTION) from None
        return True


def _runs(frames: Sequence[Frame]) -> Iterator[tuple[int, int]]:
    """First sequence and length of each run without a gap."""
    first, count = frames[0].sequence, 0
    for frame in frames:
        if frame.sequence != first + count:
            yield first, count
            first, count = frame.sequence, 0
        count += 1
    yield first, count
