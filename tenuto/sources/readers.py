"""Work on files beside the event loop: bounded in number, and left behind where it hangs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Generic, NoReturn, TypeVar

from tenuto.daemons import DaemonPool
from tenuto.errors import ErrorCode, RequestError

__all__ = ["FileTally", "GivenUp", "Readers", "shared_readers"]

MOST_OPENING = 64
"""Files being opened at once, those included that hang."""

MOST_READING = 256
"""Files being read at once, those included that hang."""

OPENING = 5.0
"""Seconds from the request to the file's header."""

PLACE = 1.0
"""Seconds that a request waits behind others before its file is looked at."""

CLOSING = 0.5
"""Seconds that a leaving listener waits until its file is closed."""

GivenUp = Callable[[], bool]
"""Has whoever asked for the work left? Long work looks, and ends."""

T = TypeVar("T")


@dataclass(slots=True)
class FileTally:
    """Counters since the start of the process."""

    refused: int = 0
    """Files not opened because others hang or are too many."""
    timed_out: int = 0
    """Files that did not open in time."""
    repaired_samples: int = 0
    """Floats that were no number or infinite."""
    stray_bytes: int = 0
    """Bytes behind a file's last whole sample."""


class Readers:
    """Opens files in some threads and reads them in others, so that files which do not open
    hold up nobody who listens.
    """

    def __init__(
        self,
        *,
        most_opening: int = MOST_OPENING,
        most_reading: int = MOST_READING,
        opening: float = OPENING,
        place: float = PLACE,
    ) -> None:
        self.tally = FileTally()
        self._opening = DaemonPool("opens files", most_opening)
        self._reading = DaemonPool("reads files", most_reading)
        self._patience = opening
        self._place = min(place, opening)

    @property
    def busy(self) -> int:
        """Files at work on, those included that hang and that nobody waits for."""
        return self._opening.busy + self._reading.busy

    async def open(self, work: Callable[[GivenUp], T], shown: str) -> T:
        """The result of `work`, which looks at the file called `shown`.

        Raises `RequestError`: AT_CAPACITY where too many others hang, SOURCE_FAILED where
        this one does.
        """
        if self._opening.stuck or self._reading.stuck:
            self._refuse()
        call = _Call(work)
        with self._submitted(self._opening, call):
            if not await call.ends_within(self._place) and self._opening.withdraw(call):
                self._refuse()
            if not await call.ends_within(self._patience - self._place):
                self.tally.timed_out += 1
                raise RequestError(
                    ErrorCode.SOURCE_FAILED,
                    f"{shown} did not open within {self._patience:g} s",
                    remedy="try again later; the disk or share that holds it may hang",
                )
            return call.done.result()

    async def read(self, work: Callable[[], T]) -> T:
        """The result of `work`, however long it takes; whoever is cancelled leaves it behind."""
        call = _Call(lambda given_up: work())
        with self._submitted(self._reading, call):
            return await call.done

    async def close(self, work: Callable[[], object]) -> None:
        """Have `work` done sometime; wait for it a little."""

        def quietly(given_up: GivenUp) -> None:
            with contextlib.suppress(OSError):
                work()

        call = _Call(quietly)
        self._submit(self._reading, call)
        await call.ends_within(CLOSING)

    @contextlib.contextmanager
    def _submitted(self, pool: DaemonPool, call: _Call[T]) -> Iterator[None]:
        self._submit(pool, call)
        try:
            yield
        finally:
            call.given_up = True
            pool.withdraw(call)

    def _submit(self, pool: DaemonPool, call: _Call[T]) -> None:
        try:
            pool.submit(call)
        except RuntimeError:  # The system has no thread left.
            self._refuse()

    def _refuse(self) -> NoReturn:
        self.tally.refused += 1
        raise RequestError(
            ErrorCode.AT_CAPACITY,
            "too many files of this server hang or wait to be opened",
            remedy="try again later; the disk or share that holds them may hang",
            detail={"retry_after": 5},
        )


class _Call(Generic[T]):
    """Work on its way: a thread calls it, and the loop it was made on awaits `done`."""

    def __init__(self, work: Callable[[GivenUp], T]) -> None:
        self.given_up = False
        self._work = work
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[T] = self._loop.create_future()

    async def ends_within(self, patience: float) -> bool:
        done, _ = await asyncio.wait([self.done], timeout=patience)
        return bool(done)

    def __call__(self) -> None:
        result: T | None = None
        failure: Exception | None = None
        try:
            result = self._work(lambda: self.given_up)
        except Exception as error:  # noqa: BLE001 - it is raised where it is awaited
            failure = error
        with contextlib.suppress(RuntimeError):  # The loop has ended without us.
            self._loop.call_soon_threadsafe(self._settle, result, failure)

    def _settle(self, result: T | None, failure: Exception | None) -> None:
        if self.given_up or self.done.done():
            return
        if failure is not None:
            self.done.set_exception(failure)
        else:
            self.done.set_result(result)  # type: ignore[arg-type]


@cache
def shared_readers() -> Readers:
    """Those of this process."""
    return Readers()
