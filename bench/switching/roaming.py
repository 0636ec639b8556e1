"""Addresses that change under a listener: by a NAT that tells nobody, and by the listener."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from bench.switching.account import Account
from bench.switching.conditions import path
from bench.switching.scenario import Setting, all_of, line, milliseconds, worst_lag
from bench.switching.stage import Noise
from netem.catalogue import Catalogue

__all__ = ["rebindings"]

_RTT: Final = 0.060
_SEED: Final = 300
_EVERY: Final = 5.0
_NAT_GAP: Final = 0.300
_OWN_GAP: Final = _RTT + 0.060


async def rebindings(setting: Setting) -> AsyncIterator[dict[str, object]]:
    """Both kinds at once, each a line."""
    noise = setting.stage.noise(setting.of(62, 15))
    seeds = range(_SEED, _SEED + setting.of(3, 1))
    told = await all_of(
        "rebinding",
        [
            *(_by_nat(setting, noise, seed) for seed in seeds),
            *(_by_client(setting, noise, seed) for seed in seeds),
        ],
    )
    half = len(told) // 2
    yield _line(3, "a NAT rebinds every 5 s", noise, told[:half], _NAT_GAP)
    yield _line(4, "rebind() every 5 s", noise, told[half:], _OWN_GAP)


async def _by_nat(setting: Setting, noise: Noise, seed: int) -> tuple[Account, int]:
    async with setting.stage.seat(Catalogue().load("nat-rebind-5s"), seed) as seat:
        seat.go({"file": noise.name})
        account = await seat.over(noise.seconds + 30)
        return account, seat.bed.tally().path.rebindings


async def _by_client(setting: Setting, noise: Noise, seed: int) -> tuple[Account, int]:
    async with setting.stage.seat(path(_RTT), seed) as seat:
        seat.go({"file": noise.name})
        rebinding = asyncio.ensure_future(_rebind(seat.do))
        account = await seat.over(noise.seconds + 30)
        rebinding.cancel()
        return account, len(account.named("rebound"))


async def _rebind(do: object) -> None:
    assert callable(do)
    while True:
        await asyncio.sleep(_EVERY)
        do("rebind")


def _line(
    number: int, what: str, noise: Noise, told: list[tuple[Account, int]], most: float
) -> dict[str, object]:
    accounts = [account for account, _ in told]
    whole = sum(noise.is_whole(account) for account in accounts)
    lost = sum(account.gaps for account in accounts)
    gaps = [account.longest_gap() for account in accounts]
    figures = {
        "seconds": noise.seconds,
        "rtt_ms": _RTT * 1000,
        "rebindings": [count for _, count in told],
        "lost": lost,
        "longest_gap_ms": milliseconds(gaps),
        "identical": whole,
        "of": len(told),
        "switches": sum(account.switches for account in accounts),
        "concealed": sum(account.concealed for account in accounts),
        "lag_ms": worst_lag(accounts),
        "trouble": [account.trouble for account in accounts if account.trouble],
    }
    limits = {"lost": 0, "longest_gap_ms": most * 1000, "identical": len(told)}
    met = not lost and max(gaps) <= most and whole == len(told)
    met = met and all(count for _, count in told)
    return line(number, what, figures, limits, met=met)
