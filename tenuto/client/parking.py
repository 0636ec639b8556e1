"""A paused stream lets go of its connection after a while: radios must sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf

__all__ = ["Parking"]


class Parking:
    """The wait before a paused stream is parked, and how long its session lives meanwhile."""

    def __init__(self, after: float, park: Callable[[], None]) -> None:
        self._after = after
        self._park = park
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._until: float | None = None
        self._holds = 0
        self._wanted = False
        self._left: asyncio.Future[None] | None = None

    @property
    def parked(self) -> bool:
        return self._left is not None

    @property
    def expires_in(self) -> float | None:
        """Seconds; None where the server did not say."""
        return None if self._until is None else max(0.0, self._until - self._loop.time())

    def paused(self, expires_in: object) -> None:
        """The session is, and lives for so many seconds."""
        known = isinstance(expires_in, int | float) and not isinstance(expires_in, bool)
        self._until = self._loop.time() + float(expires_in) if known else None  # type: ignore[arg-type]
        self.wait()

    def wait(self) -> None:
        """Begin, or begin anew, to wait."""
        self._wanted = True
        self._arm()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Not meanwhile: what is being said to the server may be the end of the pause."""
        self._holds += 1
        self._arm()
        try:
            yield
        finally:
            self._holds -= 1
            self._arm()

    def enter(self) -> None:
        self._wanted = False
        self._arm()
        self._left = self._loop.create_future()

    def leave(self) -> None:
        """There is a connection again, or nobody needs one."""
        self._wanted = False
        self._arm()
        left, self._left = self._left, None
        if left is not None:
            left.set_result(None)

    async def over(self) -> None:
        """Wait for `leave`."""
        if self._left is not None:
            await asyncio.wait([self._left])

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._wanted and not self._holds and self._after < inf:
            self._timer = self._loop.call_later(self._after, self._park)
