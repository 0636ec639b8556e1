"""A listener's process: `main([])`, the product's own client, orders and answers are JSON lines.

`{"go": ASK}` begins a flow. Meanwhile come its events, each with its moment, and
`{"event": "first-frame"}`; `{"do": NAME}` has it `move`, `rebind`, `pause` or `resume`, and
`{"close": true}` ends it before its time. Then comes `{"record": ...}`. It ends with its
standard input.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from bench.switching.counting import Counts, counted
from bench.switching.hearing import Hearing
from tenuto.cli.report import event_fields
from tenuto.client import (
    WATCH,
    Event,
    PathStore,
    Stream,
    TransportChoice,
    Trust,
    open_stream,
)
from tenuto.errors import TenutoError
from tenuto.policy import FIRST_COOL_DOWN

__all__ = ["Ask", "main"]

_LOOK: Final = 0.02
"""Seconds between looks whether this process is late."""

_CLOSE_WITHIN: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One flow. `memory` is a folder; what it keeps, and two of the client's times, are scaled."""

    url: str
    ca: str
    params: Mapping[str, str | int | float]
    transport: str = "auto"
    memory: str | None = None
    cool_down: float = FIRST_COOL_DOWN
    interval: float = WATCH.interval
    counted: bool = False
    """Whether packets are counted each second."""


class _Flow:
    """A stream from its opening to its record."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._loop = asyncio.get_running_loop()
        self._hearing = Hearing()
        self._stream: Stream | None = None
        self._began = self._loop.time()
        self._lag = 0.0
        self._trouble: str | None = None
        self._counts: list[Counts] = []
        self._aside = [asyncio.ensure_future(self._watch_lag())]
        if ask.counted:
            self._aside.append(asyncio.ensure_future(counted(self._counts)))
        self._doing: asyncio.Task[None] | None = None
        self.task = asyncio.ensure_future(self._guarded())

    async def _guarded(self) -> None:
        try:
            await self._listen()
        except (TenutoError, OSError) as error:
            self._trouble = str(error) or type(error).__name__
        except Exception as error:  # noqa: BLE001 - told with the flow
            self._trouble = f"{type(error).__name__}: {error}"

    async def _listen(self) -> None:
        ask, hearing = self._ask, self._hearing
        kept = None if ask.memory is None else Path(ask.memory, "paths.json")
        self._began = self._loop.time()
        async with open_stream(
            ask.url,
            transport=cast(TransportChoice, ask.transport),
            params=ask.params,
            trust=Trust(cafile=Path(ask.ca)),
            on_event=self._happened,
            watch=replace(WATCH, interval=ask.interval),
            memory=PathStore(kept, cool_down=ask.cool_down, identify=lambda _: "the bed"),
        ) as stream:
            self._stream = stream
            async for frame in stream:
                now = self._loop.time()
                if not hearing.arrivals:
                    _say({"event": "first-frame", "at": now, "transport": stream.transport})
                hearing.frame(frame, stream.format, stream.transport, now)
                if hearing.heard is not None:
                    stream.heard(hearing.heard)
            hearing.finish()

    def _happened(self, event: Event) -> None:
        _say(event_fields(event) | {"at": self._loop.time()})

    def do(self, order: Mapping[str, Any]) -> None:
        self._doing = asyncio.ensure_future(self._do(order))

    async def _do(self, order: Mapping[str, Any]) -> None:
        stream, name = self._stream, str(order["do"])
        if stream is None:
            return
        try:
            match name:
                case "move":
                    await stream.move(order["to"])
                case "pause":
                    self._hearing.sleep(self._loop.time())
                    await stream.pause()
                case "resume":
                    await stream.resume()
                    self._hearing.wake(self._loop.time())
                case "rebind":
                    stream.rebind()
                case _:
                    raise ValueError(name)
        except TenutoError as error:
            at = self._loop.time()
            _say({"event": "refused", "at": at, "what": name, "reason": error.message})
        else:
            _say({"event": "done", "at": self._loop.time(), "what": name})

    async def end(self) -> None:
        """And the record of it."""
        aside = [*self._aside, *([] if self._doing is None else [self._doing])]
        for task in aside:
            task.cancel()
        self.task.cancel()
        await asyncio.wait([self.task, *aside], timeout=_CLOSE_WITHIN)
        self._hearing.listen(self._loop.time())
        stream = self._stream
        record = {
            **self._hearing.told(),
            "began": self._began,
            "gaps": 0 if stream is None else stream.gaps,
            "duplicates": 0 if stream is None else stream.duplicates,
            "complete": stream is not None and stream.complete,
            "trouble": self._trouble,
            "lag": self._lag,
            "counts": self._counts,
        }
        _say({"record": record})

    async def _watch_lag(self) -> None:
        while True:
            due = self._loop.time() + _LOOK
            await asyncio.sleep(_LOOK)
            self._lag = max(self._lag, self._loop.time() - due)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    _say({"ready": True})
    while line := await orders.readline():
        order = json.loads(line)
        # What comes too late, for a flow that is over, is nobody's.
        if "go" in order:
            await _follow(_Flow(Ask(**order["go"])), orders)


async def _follow(flow: _Flow, orders: asyncio.StreamReader) -> None:
    closing = False
    reading = asyncio.ensure_future(orders.readline())
    while not flow.task.done() and not closing:
        await asyncio.wait([flow.task, reading], return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            line = reading.result()
            order = json.loads(line) if line else {"close": True}
            closing = "close" in order
            if "do" in order:
                flow.do(order)
            if not closing:
                reading = asyncio.ensure_future(orders.readline())
    if not closing:
        reading.cancel()
        await asyncio.wait([reading])
    await flow.end()


def _say(answer: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    """Until standard input ends."""
    with suppress(KeyboardInterrupt, BrokenPipeError):
        asyncio.run(_serve())
    # Libraries may hold threads; nothing of theirs is worth waiting for.
    os._exit(0)
