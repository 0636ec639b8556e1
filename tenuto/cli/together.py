"""Several pieces of work at once, of which each needs the others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

__all__ = ["together"]


async def together(*work: Coroutine[object, object, None]) -> None:
    """Wait for all; the first that fails ends the others, and its error is raised."""
    tasks = [asyncio.create_task(piece) for piece in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
