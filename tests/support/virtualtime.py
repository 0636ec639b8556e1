"""An event loop whose clock jumps to the next timer, for code that waits much and does little."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["run_in_virtual_time"]

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everything waits for everything"
        self.now += max(0.0, timeout)
        return super().select(0)


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def run_in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end; `loop.time()` is the clock, and no thread may take part."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(main)
