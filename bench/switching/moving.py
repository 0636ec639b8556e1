"""Changes of transport that were asked for, at random moments."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Final

from bench.switching.account import Account
from bench.switching.conditions import path
from bench.switching.scenario import Setting, all_of, line, milliseconds, worst_lag
from bench.switching.stage import Noise

__all__ = ["moves"]

_RTT: Final = 0.060
_SEED: Final = 700
_PAUSE: Final = (0.02, 0.6)
_WITHIN: Final = 15.0


async def moves(setting: Setting) -> AsyncIterator[dict[str, object]]:
    """From QUIC to TCP and back, again and again."""
    listeners, times = setting.of(4, 2), setting.of(25, 8)
    noise = setting.stage.noise(setting.of(32, 12))
    told = await all_of(
        "moves", (_moved(setting, noise, _SEED + each, times) for each in range(listeners))
    )
    accounts = [account for account, _ in told]
    done = sum(count for _, count in told)
    whole = sum(noise.is_whole(account) for account in accounts)
    first = [each["first_frame"] for account in accounts for each in account.named("moved")]
    duplicates = sum(account.duplicates for account in accounts)
    concealed = sum(account.concealed for account in accounts)
    met = done >= listeners * times and whole == len(accounts)
    figures = {
        "rtt_ms": _RTT * 1000,
        "moves": done,
        "identical": whole,
        "of": len(accounts),
        "concealed": concealed,
        "duplicates_dropped": duplicates,
        "first_frame_ms": milliseconds(first),
        "lag_ms": worst_lag(accounts),
        "trouble": [account.trouble for account in accounts if account.trouble],
    }
    limits = {"moves": listeners * times, "identical": len(accounts)}
    yield line(7, "moves at random moments", figures, limits, met=met)


async def _moved(setting: Setting, noise: Noise, seed: int, times: int) -> tuple[Account, int]:
    draws = random.Random(seed)
    done = 0
    async with setting.stage.seat(path(_RTT), seed) as seat:
        seat.go({"file": noise.name})
        transport = str((await seat.first_frame())["transport"])
        for number in range(times):
            await asyncio.sleep(draws.uniform(*_PAUSE))
            transport = "tcp" if transport == "quic" else "quic"
            seat.do("move", to=transport)
            if not await seat.nth("moved", number + 1, _WITHIN):
                break
            done += 1
        return await seat.over(), done
