"""What was begun on a network that the device has left is not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

__all__ = ["Hurry"]

T = TypeVar("T")


class Hurry:
    """Cuts short the step that it is told to watch."""

    def __init__(self) -> None:
        self.asked = False
        """Since somebody last set it to False."""
        self._step: asyncio.Timeout | None = None

    def ask(self) -> None:
        """The network is another one: what we wait for, and where we dial, belongs to the old."""
        self.asked = True
        if self._step is not None and not self._step.expired():
            self._step.reschedule(asyncio.get_running_loop().time())

    async def unless(self, step: Awaitable[T]) -> T | None:
        """What `step` gives; None where it was cancelled, for somebody asked meanwhile."""
        try:
            async with asyncio.timeout(None) as self._step:
                return await step
        except TimeoutError:
            if not self.asked:
                raise
            return None
        finally:
            self._step = None
