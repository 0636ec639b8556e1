"""Modes that the lab does not know."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Final

from bench.lab.listening.ask import Ask
from bench.lab.listening.heard import Heard
from bench.lab.payload import FRAME_NANO, frame
from bench.lab.reference import client

__all__ = ["LATE", "listen", "listen_late"]

LATE: Final = 0.123
"""Seconds after it was due that each frame comes to `listen_late`, but every tenth never."""


async def listen(ask: Ask, heard: Heard) -> None:
    """The reference server's, with as many copies of each frame as are asked for."""
    options = {"way": "datagram", "copies": ask.options["copies"], "floor": 1}
    await client.listen(replace(ask, options=options), heard)


async def listen_late(ask: Ask, heard: Heard) -> None:
    """No network at all: what is recorded is known beforehand."""
    heard.connected()
    start = time.monotonic_ns()
    for number in range(ask.frames):
        due = start + number * FRAME_NANO
        while (left := due * 1e-9 + LATE - time.monotonic()) > 0:
            await asyncio.sleep(left)
        if number % 10 != 9:
            heard.frame(frame(number, due))
    await heard.hold()
