"""A listener's program that tests stop and let go on: `PORT CA`, its findings as JSON at the end.

It hears a clock with mode=live and numbered frames without a gap, over both transports at once.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from hashlib import sha256
from pathlib import Path

from tenuto.client import Event, GapSeen, Transport, Trust, open_stream
from tenuto.sources import read_clock

__all__ = ["CLOCK", "NUMBERED", "PLAYING"]

CLOCK, NUMBERED = 350, 175
"""Frames of either source."""

PLAYING = 40
"""After so many frames of each it says so."""


class Listeners:
    def __init__(self, port: str, ca: str) -> None:
        self._url = f"https://localhost:{port}/v1/speak?source="
        self._trust = Trust(cafile=Path(ca))
        self._ready = 0

    def _came(self, count: int) -> None:
        self._ready += count == PLAYING
        if count == PLAYING and self._ready == 4:
            print("playing", flush=True)

    async def live(self, transport: Transport) -> dict[str, object]:
        """`came`: sequence, when, and how long after it was due. `gaps`: as events told them."""
        came: list[tuple[int, float, float]] = []
        gaps: list[tuple[int, int, bool]] = []

        def note(event: Event) -> None:
            if isinstance(event, GapSeen):
                gaps.append((event.sequence, event.count, event.announced))

        async with open_stream(
            f"{self._url}clock&frames={CLOCK}",
            transport=transport,
            mode="live",
            trust=self._trust,
            on_event=note,
        ) as stream:
            async for frame in stream:
                now, (_, due) = time.monotonic(), read_clock(frame.payload)
                came.append((frame.sequence, now, now - due * 1e-9))
                self._came(len(came))
        return {"mode": "live", "transport": transport, "came": came, "gaps": gaps}

    async def gapless(self, transport: Transport) -> dict[str, object]:
        digest, sequences = sha256(), []
        async with open_stream(
            f"{self._url}counting&frames={NUMBERED}",
            transport=transport,
            mode="gapless",
            lead=0.5,
            trust=self._trust,
        ) as stream:
            async for frame in stream:
                digest.update(frame.payload)
                sequences.append(frame.sequence)
                self._came(len(sequences))
        return {
            "mode": "gapless",
            "transport": transport,
            "sequences": sequences,
            "digest": digest.hexdigest(),
            "gaps": stream.gaps,
        }

    async def all(self) -> list[dict[str, object]]:
        return list(
            await asyncio.gather(
                self.live("quic"), self.live("tcp"), self.gapless("quic"), self.gapless("tcp")
            )
        )


if __name__ == "__main__":
    print(json.dumps(asyncio.run(Listeners(*sys.argv[1:]).all())))
