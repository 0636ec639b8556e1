"""A listener's process: `main([LISTENER])`, orders and answers are JSON lines.

`{"go": ASK}` is answered by a record when the flow is over; its connection stays open until
`{"close": true}`, so that what closing sends is no part of what was counted. It ends with its
standard input.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from typing import Final, cast

from bench.lab.listening.ask import Ask
from bench.lab.listening.heard import Heard
from tenuto.errors import TenutoError

__all__ = ["Listen", "main"]

Listen = Callable[[Ask, Heard], Awaitable[None]]

_LOOK: Final = 0.05
"""Seconds between looks whether the flow is over; their lateness is the loop's."""

_CLOSE_WITHIN: Final = 2.0
"""Seconds for a connection to close in; there is nothing on the link that would lose it."""


def main(arguments: list[str]) -> None:
    (name,) = arguments
    module, _, function = name.partition(":")
    listen = cast(Listen, getattr(import_module(module), function))
    with suppress(KeyboardInterrupt, BrokenPipeError):
        asyncio.run(_serve(listen))
    # Libraries may hold threads; nothing of theirs is worth waiting for.
    os._exit(0)


async def _serve(listen: Listen) -> None:
    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    _say({"ready": True})
    while line := await orders.readline():
        order = json.loads(line)
        await _flow(listen, Ask(**order["go"]), orders)
        _say({"closed": True})


async def _flow(listen: Listen, ask: Ask, orders: asyncio.StreamReader) -> None:
    gc.collect()
    gc.freeze()
    gc.disable()
    heard = Heard(ask.frames, ask.patience)
    flow = asyncio.ensure_future(_guarded(listen, ask, heard))
    lag = await _until_over(heard, flow)
    _say({"record": asdict(heard.record(lag))})
    await orders.readline()  # the order to close, or the end
    flow.cancel()
    await asyncio.wait([flow], timeout=_CLOSE_WITHIN)
    gc.enable()


async def _guarded(listen: Listen, ask: Ask, heard: Heard) -> None:
    """Whatever becomes of a flow is a figure of it."""
    try:
        await listen(ask, heard)
    except (TenutoError, OSError) as error:
        heard.fail(str(error) or type(error).__name__)
    except Exception as error:  # noqa: BLE001 - a mode's fault is told with its flow
        heard.fail(f"{type(error).__name__}: {error}")


async def _until_over(heard: Heard, flow: asyncio.Future[None]) -> float:
    """The worst lateness of a timer meanwhile."""
    loop, worst = asyncio.get_running_loop(), 0.0
    while not heard.over and not flow.done():
        due = loop.time() + _LOOK
        await asyncio.sleep(_LOOK)
        worst = max(worst, loop.time() - due)
    return worst


def _say(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
