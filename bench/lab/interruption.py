"""Signals that ask a run to end: noted at once, obeyed where nothing is half done."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Final, Self

from bench.lab.errors import Interrupted

__all__ = ["Interruption"]

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """While it is entered, a signal is only noted, and `check` raises `Interrupted`.

    What can be repeated, such as rendering, runs in `abandoned_by_second`. Signals that were
    ignored before stay ignored, as for a job of nohup.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        """The first signal's."""
        self._second_raises = False
        self._before: dict[signal.Signals, object] = {}
        self._readable, self._written = -1, -1

    def __enter__(self) -> Self:
        self._readable, self._written = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for each in _ENDING:
            if signal.getsignal(each) is not signal.SIG_IGN:
                self._before[each] = signal.signal(each, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)  # type: ignore[arg-type]
        os.close(self._readable)
        os.close(self._written)

    def fileno(self) -> int:
        """Readable once a signal has come, for who waits."""
        return self._readable

    def check(self) -> None:
        if self.number is not None:
            raise Interrupted(self.number)

    @contextlib.contextmanager
    def abandoned_by_second(self) -> Iterator[None]:
        """What is in here ends with `Interrupted` at a signal, unless that is the first one."""
        self._second_raises = True
        try:
            yield
        finally:
            self._second_raises = False

    @contextlib.contextmanager
    def shielded(self) -> Iterator[None]:
        """Within `abandoned_by_second`: what is in here is done to its end."""
        raising, self._second_raises = self._second_raises, False
        try:
            yield
        finally:
            self._second_raises = raising

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None and self._second_raises:
            raise Interrupted(number)
        if self.number is None:
            self.number = number
            with contextlib.suppress(BlockingIOError):
                os.write(self._written, b"!")
