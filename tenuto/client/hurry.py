"""What was begun on a network that the device has left is not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

__all__ = ["Hurry"]

T = TypeVar("T")


def _keep(_: object) -> None:
    """Nothing has to be let go of."""


class Hurry:
    """Cuts short the steps that it is told to watch."""

    def __init__(self) -> None:
        self.asked = False
        """Since somebody last set it to False."""
        self._steps: set[asyncio.Timeout] = set()

    def ask(self) -> None:
        """The network is another one: what we wait for, and where we dial, belongs to the old."""
        self.asked = True
        for step in self._steps:
            if not step.expired():
                step.reschedule(asyncio.get_running_loop().time())

    async def unless(self, step: Awaitable[T], discard: Callable[[T], object] = _keep) -> T | None:
        """What `step` gives; None where it was cancelled, for somebody asked meanwhile.

        What it gave in that very moment goes to `discard`.
        """
        limit = asyncio.timeout(None)
        self._steps.add(limit)
        try:
            async with limit:
                given = await step
        except TimeoutError:
            if not limit.expired():
                raise
            return None
        finally:
            self._steps.discard(limit)
        if limit.when() is None:
            return given
        discard(given)
        return None
