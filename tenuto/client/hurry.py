"""What was begun on a network that the device has left is not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

__all__ = ["MOST_CUTS", "Hurry"]

T = TypeVar("T")

MOST_CUTS = 10
"""Steps in turn that are cut short: where networks come faster than answers, one must end."""


def _keep(_: object) -> None:
    """Nothing has to be let go of."""


class Hurry:
    """Cuts short the steps that it is told to watch."""

    def __init__(self) -> None:
        self.asked = False
        """Since somebody last set it to False."""
        self._steps: set[asyncio.Timeout] = set()
        self._cuts = 0
        """Since a step came to its own end."""

    def ask(self) -> None:
        """The network is another one: what we wait for, and where we dial, belongs to the old."""
        self.asked = True
        if self._cuts < MOST_CUTS:
            self.end()

    def end(self) -> None:
        """Whatever is being done is not needed."""
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
        except BaseException as error:
            if not (isinstance(error, TimeoutError) and limit.expired()):
                self._cuts = 0
                raise
            self._cuts += 1
            return None
        finally:
            self._steps.discard(limit)
        if limit.when() is None:
            self._cuts = 0
            return given
        self._cuts += 1
        discard(given)
        return None
