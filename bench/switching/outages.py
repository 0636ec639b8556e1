"""A radio that is gone for a while, on a path that loses packets anyway."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from statistics import median
from typing import Final

from bench.switching.account import Account
from bench.switching.conditions import blacked_out, path
from bench.switching.scenario import Setting, all_of, line, milliseconds, worst_lag
from bench.switching.stage import Noise

__all__ = ["outages"]

_RTT: Final = 0.060
_LOSS: Final = 0.02
_SEED: Final = 500
_WHEN: Final = (1.0, 3.0)
_WITHIN: Final = 0.200
_LATER: Final = 2.0
_LENGTHS: Final = (1.0, 3.0, 10.0)
_NEVER: Final = 1e9


async def outages(setting: Setting) -> AsyncIterator[dict[str, object]]:
    """A line for each length: how long after its end is there audio by QUIC again?"""
    for length in _LENGTHS[: setting.of(3, 2)]:
        noise = setting.stage.noise(length + 10.0)
        seeds = range(_SEED, _SEED + setting.of(10, 3))
        told = await all_of(
            f"outage of {length:g} s", (_outage(setting, noise, length, seed) for seed in seeds)
        )
        accounts = [account for account, _ in told]
        back = [account.first_after(end, "quic") for account, end in told]
        by_quic = [at and at - end for at, (_, end) in zip(back, told, strict=True)]
        later = [account.transport_at(end + _LATER) for account, end in told]
        figures = {
            "outage_s": length,
            "loss": _LOSS,
            "rtt_ms": _RTT * 1000,
            "back_on_quic_ms": milliseconds(by_quic),
            "silence_ms": milliseconds([account.silence for account in accounts]),
            "on_quic_2_s_later": later.count("quic"),
            "identical": sum(noise.is_whole(account) for account in accounts),
            "of": len(told),
            "switches": sum(account.switches for account in accounts),
            "concealed": sum(account.concealed for account in accounts),
            "underruns": sum(account.underruns for account in accounts),
            "lag_ms": worst_lag(accounts),
            "trouble": [account.trouble for account in accounts if account.trouble],
        }
        middle = median([_NEVER if each is None else each for each in by_quic])
        half = len(told) // 2
        limits = {"median_back_on_quic_ms": _WITHIN * 1000, "on_quic_2_s_later": half}
        met = middle <= _WITHIN and later.count("quic") >= half
        yield line(5, "outage", figures, limits, met=met)


async def _outage(
    setting: Setting, noise: Noise, length: float, seed: int
) -> tuple[Account, float]:
    """And the moment of its end."""
    draws, clear = random.Random(seed), path(_RTT, loss=_LOSS)
    async with setting.stage.seat(clear, seed) as seat:
        seat.go({"file": noise.name})
        await seat.first_frame()
        await asyncio.sleep(draws.uniform(*_WHEN))
        began = seat.change(blacked_out(clear, length), seed)
        account = await seat.over(length + noise.seconds + 60)
        return account, began + length
