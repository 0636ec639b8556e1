"""A mode that the lab does not know: the reference server's, with two copies of each frame."""

from __future__ import annotations

from dataclasses import replace

from bench.lab.listening.ask import Ask
from bench.lab.listening.heard import Heard
from bench.lab.reference import client

__all__ = ["listen"]


async def listen(ask: Ask, heard: Heard) -> None:
    options = {"way": "datagram", "copies": ask.options["copies"], "floor": 1}
    await client.listen(replace(ask, options=options), heard)
