"""What a new leg brings, held back until it has shown that it delivers."""

from __future__ import annotations

import asyncio

from tenuto.client.errors import FailureKind, LegError
from tenuto.client.exchange import Leg
from tenuto.media import Frame
from tenuto.wire import End, Format, Keepalive, Notice, Record, RecordDecoder

__all__ = ["SURELY_ALIVE", "first_of"]

SURELY_ALIVE = 5
"""Signs of life of a new leg, one each 200 ms, after which it counts without a frame."""


async def first_of(leg: Leg, *, paused: bool, deadline: float, alive: int = SURELY_ALIVE) -> bytes:
    """The body up to the first frame, or whatever else shows that all is well.

    That is END, so many signs of life (KEEPALIVE, NOTICE), and where it is `paused` FORMAT alone.

    At most what comes with that frame in one read is held, and what announces it. Raises
    `LegError`, and `RemoteProtocolError` for bytes that break the format.
    """
    decoder = RecordDecoder()
    held = bytearray()
    life = 0
    try:
        async with asyncio.timeout(deadline):
            while True:
                data = await leg.read()
                if not data:
                    raise LegError(FailureKind.CLOSED, f"{leg.peer} ended before the first frame")
                held += data
                records = decoder.feed(data)
                life += sum(isinstance(record, Keepalive | Notice) for record in records)
                if life >= alive or any(_delivers(each, paused) for each in records):
                    return bytes(held)
    except TimeoutError:
        reason = f"{leg.peer} sent no frame within {deadline:g} s"
        raise LegError(FailureKind.TIMEOUT, reason) from None


def _delivers(record: Record, paused: bool) -> bool:
    return isinstance(record, Frame | End) or (paused and isinstance(record, Format))
