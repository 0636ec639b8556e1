"""Listeners that measure: what arrived when, over either door, and who was disturbed."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

from tenuto.client import PathStore, TransportChoice, Trust, open_stream

__all__ = ["Heard", "listen"]


@dataclass
class Heard:
    """Arrivals of one listener: the time of each frame and its sequence."""

    times: list[float] = field(default_factory=list)
    sequences: list[int] = field(default_factory=list)

    @property
    def longest_gap(self) -> float:
        """Seconds between two arrivals; 0 with fewer than two."""
        pairs = zip(self.times, self.times[1:], strict=False)
        return max((after - before for before, after in pairs), default=0.0)

    @property
    def complete(self) -> bool:
        return self.sequences == list(range(len(self.sequences)))


async def listen(
    port: int,
    ca: Path,
    params: dict[str, str],
    *,
    transport: TransportChoice,
    seconds: float,
) -> Heard:
    """Play `params` for so long and note every frame."""
    heard = Heard()
    url = f"https://localhost:{port}/v1/speak"
    trust = Trust(cafile=ca)
    try:
        async with (
            asyncio.timeout(seconds),
            open_stream(
                url,
                transport=transport,
                params=params,
                trust=trust,
                memory=PathStore(),
                resume=None,
            ) as stream,
        ):
            async for frame in stream:
                heard.times.append(time.monotonic())
                heard.sequences.append(frame.sequence)
    except TimeoutError:
        pass
    return heard
