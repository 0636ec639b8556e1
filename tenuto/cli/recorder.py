"""Writes down when frames came, while something else plays them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

from tenuto.cli.sink import check_place, unwritable
from tenuto.client.arrivals import (
    MAX_LINES,
    ArrivalEvent,
    ArrivalsHeader,
    event_line,
    header_line,
)
from tenuto.media import Frame

__all__ = ["ArrivalRecorder", "check_recording"]

_OPTION = "--record-arrivals"


def check_recording(output: str) -> None:
    """Refuse before anything is asked of a server; an `OperatorError` says why."""
    check_place(output, _OPTION)


class ArrivalRecorder:
    """A file in the form of `tenuto.client.arrivals`; whole after each line.

    What a reader would refuse as too long is not written: `dropped` counts it.
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
        self.events = 0
        self.dropped = 0
        try:
            # Unbuffered, so that nothing is lost where the process is killed.
            self._file = Path(output).open("wb", buffering=0)  # noqa: SIM115 - by `__exit__`
        except OSError as error:
            raise unwritable(output, error, _OPTION) from None
        try:
            self._write(header_line(header))
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def add(self, frames: Sequence[Frame]) -> None:
        """These came together, in order; a gap among them makes two events of one."""
        at = self._clock() - self._started
        for first, count in _runs(frames):
            if self._room <= 0:
                self.dropped += 1
                continue
            self._room -= 1
            self.events += 1
            self._write(event_line(ArrivalEvent(at, first, count)))

    def _write(self, line: str) -> None:
        try:
            self._file.write(line.encode())
        except OSError as error:
            raise unwritable(self._output, error, _OPTION) from None


def _runs(frames: Sequence[Frame]) -> Iterator[tuple[int, int]]:
    """First sequence and length of each run without a gap."""
    first, count = frames[0].sequence, 0
    for frame in frames:
        if frame.sequence != first + count:
            yield first, count
            first, count = frame.sequence, 0
        count += 1
    yield first, count
