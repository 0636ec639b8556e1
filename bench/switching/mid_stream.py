"""UDP that dies or starves in mid-stream, under a listener that plays."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from bench.switching.account import Account, Decision
from bench.switching.conditions import DEATHS, dying, path
from bench.switching.scenario import Setting, all_of, line, milliseconds, worst_lag
from bench.switching.stage import Noise

__all__ = ["deaths"]

_RTTS: Final = (0.060, 0.150)
_SEED: Final = 200
_WHEN: Final = (0.5, 5.0)
"""Seconds after the first frame, at random."""
_SECONDS: Final = 14.0
_DECIDED_WITHIN: Final = 1.2


@dataclass(frozen=True, slots=True)
class _Death:
    account: Account
    at: float
    whole: bool

    @property
    def decision(self) -> Decision | None:
        return self.account.decision(self.at)

    @property
    def decided(self) -> float | None:
        """Seconds from the last record that came in time."""
        decision = self.decision
        last = None if decision is None else self.account.last_in_time(decision.at)
        return None if decision is None or last is None else decision.at - last

    @property
    def first_tcp(self) -> float | None:
        """Seconds from the decision."""
        if self.decision is None:
            return None
        first = self.account.first_after(self.decision.at, "tcp")
        return None if first is None else first - self.decision.at


async def deaths(setting: Setting) -> AsyncIterator[dict[str, object]]:
    """A line for each kind of death and RTT."""
    noise = setting.stage.noise(_SECONDS)
    seeds = setting.of(5, 1)
    for rtt in _RTTS[: setting.of(2, 1)]:
        plan = [(how, _SEED + seed) for how in DEATHS for seed in range(seeds)]
        flows = (_death(setting, noise, how, rtt, seed) for how, seed in plan)
        told = await all_of(f"UDP dies, RTT {rtt * 1000:g} ms", flows)
        for how in DEATHS:
            those = [death for death, (kind, _) in zip(told, plan, strict=True) if kind == how]
            yield _line(how, rtt, those)


async def _death(setting: Setting, noise: Noise, how: str, rtt: float, seed: int) -> _Death:
    draws, alive = random.Random(f"{seed}/{how}"), path(rtt)
    async with setting.stage.seat(alive, seed) as seat:
        seat.go({"file": noise.name})
        await seat.first_frame()
        await asyncio.sleep(draws.uniform(*_WHEN))
        at = seat.change(dying(alive, how), seed)
        account = await seat.over()
        return _Death(account, at, noise.is_whole(account))


def _line(how: str, rtt: float, told: list[_Death]) -> dict[str, object]:
    accounts = [each.account for each in told]
    decided = [each.decided for each in told]
    concealed = sum(account.concealed for account in accounts)
    underruns = sum(account.underruns for account in accounts)
    whole = sum(each.whole for each in told)
    in_time = all(each is not None and each <= _DECIDED_WITHIN for each in decided)
    figures = {
        "udp": how,
        "rtt_ms": rtt * 1000,
        "concealed": concealed,
        "underruns": underruns,
        "decided_ms": milliseconds(decided),
        "first_tcp_ms": milliseconds([each.first_tcp for each in told]),
        "identical": whole,
        "of": len(told),
        "reasons": sorted({each.decision.reason for each in told if each.decision}),
        "lag_ms": worst_lag(accounts),
        "trouble": [account.trouble for account in accounts if account.trouble],
    }
    limits: dict[str, object] = {
        "concealed": 0,
        "underruns": 0,
        "decided_ms": _DECIDED_WITHIN * 1000,
        "identical": len(told),
    }
    met = not concealed and not underruns and in_time and whole == len(told)
    return line(2, "UDP dies in mid-stream", figures, limits, met=met)
