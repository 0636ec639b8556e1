"""The product's own listener, through the public client."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import cast

from bench.lab.listening.ask import HOST, PRODUCT_PORT, Ask
from bench.lab.listening.heard import Heard
from tenuto.client import Address, PathStore, TransportChoice, Trust, open_stream

__all__ = ["listen"]


async def listen(ask: Ask, heard: Heard) -> None:
    """Each frame by itself: TCP's door would put five to ten of them into a chunk."""
    address = Address(socket.AF_INET, (HOST, PRODUCT_PORT))
    async with open_stream(
        f"https://localhost:{PRODUCT_PORT}/v1/speak",
        transport=cast(TransportChoice, ask.options["transport"]),
        params={"source": "clock", "frames": ask.frames, "chunk": 1},
        trust=Trust(cafile=Path(ask.ca)),
        addresses=[address],
        memory=PathStore(),
        resume=None,  # what a path does to one connection is what is measured
    ) as stream:
        heard.connected(stream.timings.connected)
        async for frame in stream:
            heard.frame(frame.payload)
        await heard.hold()
