"""Calls that may never return, beside the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

__all__ = ["Aside", "aside"]

T = TypeVar("T")


class Aside(Protocol):
    """Something that calls as `aside` does."""

    async def __call__(
        self, call: Callable[[], T], within: float, late: Callable[[T], object] | None = None
    ) -> T: ...


async def aside(
    call: Callable[[], T], within: float, late: Callable[[T], object] | None = None
) -> T:
    """The call's result, from a thread of its own; `TimeoutError` where it takes longer.

    The thread is a daemon, so that nobody waits for a device that hangs: neither we nor the
    end of the process. `late` gets, in that thread, a result that nobody waits for any more.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if done.done():
            if error is None and late is not None:
                threading.Thread(target=late, args=(result,), daemon=True).start()
        elif error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    waited = threading.Event()  # set: nobody waits any more

    def work() -> None:
        result, failure = None, None
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 - it is raised where it is awaited
            failure = error
        if waited.is_set():
            if failure is None and late is not None:
                late(result)  # type: ignore[arg-type]
            return
        with suppress(RuntimeError):  # the loop has ended without us
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=work, name="aside", daemon=True).start()
    try:
        async with asyncio.timeout(within):
            return await done
    finally:
        waited.set()
