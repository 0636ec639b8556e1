"""Flows that fall silent for a while: does the server see them at the same port again?"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

from tenuto.client import Address, Target, Trust
from tenuto.doctor.diagnosis.evidence import Seen, Silence
from tenuto.doctor.diagnosis.nat import silences_up_to
from tenuto.doctor.diagnosis.negotiation import ProbeId, version_probe
from tenuto.doctor.exchange import see
from tenuto.doctor.probing import udp_socket

__all__ = ["watch_nat"]

_APART = 0.2
"""Seconds between the beginnings of two flows, for the sake of slow lines."""

_STEADY = 12.0
"""Seconds for which one flow is kept busy and closely watched."""

_BEAT = 0.5
"""Seconds between its packets."""

_LOOK_EVERY = 3.0

_SELDOM = 10.0
"""Seconds between looks, and a fifth of it between packets, beside the silences after that: what
moves it then was no silence's doing."""


async def watch_nat(
    address: Address,
    target: Target,
    trust: Trust,
    limit: float,
    *,
    on_seen: Callable[[Seen], None],
    on_silence: Callable[[Silence], None],
) -> None:
    """All silences side by side, so that it lasts as long as the longest; tells as it goes."""
    waits = silences_up_to(limit)
    async with asyncio.TaskGroup() as group:
        group.create_task(_busy(address, target, trust, max(waits, default=0.0), on_seen))
        for place, wait in enumerate(waits, 1):
            flow = _silent(address, target, trust, wait, place * _APART, on_silence)
            group.create_task(flow)


async def _silent(
    address: Address,
    target: Target,
    trust: Trust,
    wait: float,
    begin: float,
    on_silence: Callable[[Silence], None],
) -> None:
    await asyncio.sleep(begin)
    with udp_socket(address) as local:
        before = await see(address, target, trust, local)
        if before is not None:
            await asyncio.sleep(wait)
            on_silence(Silence(wait, before, await see(address, target, trust, local)))


async def _busy(
    address: Address,
    target: Target,
    trust: Trust,
    seconds: float,
    on_seen: Callable[[Seen], None],
) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    until = began + seconds
    nonce, number = os.urandom(4), 0
    with udp_socket(address) as local:
        while True:
            seen = await see(address, target, trust, local)
            if seen is not None:
                on_seen(seen)
            if loop.time() >= until:
                return
            close = loop.time() < began + _STEADY
            look = min(until, loop.time() + (_LOOK_EVERY if close else _SELDOM))
            beat = _BEAT if close else _SELDOM / 5
            while loop.time() < look:
                number = (number + 1) % 65536
                with suppress(OSError):
                    local.send(version_probe(ProbeId(nonce, 0, number), 1200))
                await asyncio.sleep(min(beat, max(0.0, look - loop.time())))
