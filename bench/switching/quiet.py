"""Streams that are silent for a good reason: nothing may come of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, cast

from bench.switching.account import Account
from bench.switching.conditions import path
from bench.switching.scenario import Setting, all_of, line

__all__ = ["begin_pause", "long_pause", "quiet_ones"]

_RTT: Final = 0.060
_SEED: Final = 600
_STALL: Final = 3.0
_BEFORE_STALL: Final = 25
"""Steps of the model, of 160 ms, in real time."""
_MOST_PER_SECOND: Final = 12.0
"""UDP datagrams of a client in a silence: KEEPALIVE comes five times a second and is
acknowledged, and a heartbeat once."""
_BEFORE_PAUSE: Final = 3.0
_SETTLED: Final = 30.0
"""Seconds of a pause, after which nothing is sent."""
_RESUMED_WITHIN: Final = 20.0

_DATAGRAMS, _SEGMENTS, _OPENS = 1, 2, 3

_ALARMS: Final = ("suspected", "moved", "stayed", "interrupted")


@dataclass(frozen=True, slots=True)
class _Paused:
    account: Account
    begin: float
    end: float


async def quiet_ones(setting: Setting) -> AsyncIterator[dict[str, object]]:
    """A source that pauses, and chunks that are far apart."""
    model: dict[str, str | int | float] = {
        "source": "model",
        "seconds": 8,
        "rtf": 1,
        "stall_every": _BEFORE_STALL,
        "stall": _STALL,
    }
    chunks: dict[str, str | int | float] = {"file": setting.stage.noise(12.0).name, "chunk": 10}
    pause, chunked = await all_of("quiet ones", [_heard(setting, model), _heard(setting, chunks)])
    yield _line("a source that pauses for 3 s", pause, _silence(pause))
    yield _line("10 frames a chunk", chunked, None)


async def _heard(setting: Setting, params: Mapping[str, str | int | float]) -> Account:
    async with setting.stage.seat(path(_RTT), _SEED) as seat:
        seat.go(params, counted=True)
        await seat.first_frame()
        return await seat.over()


def _silence(account: Account) -> tuple[float, float]:
    """The longest gap."""
    pairs = pairwise(account.arrivals)
    return max(((one.at, other.at) for one, other in pairs), key=lambda gap: gap[1] - gap[0])


def _line(what: str, account: Account, silence: tuple[float, float] | None) -> dict[str, object]:
    opens = account.sent(_OPENS, 0.0, float("inf"))
    alarms = account.named(*_ALARMS)
    begin, end = silence or (account.arrivals[0].at, account.arrivals[-1].at)
    datagrams = account.sent(_DATAGRAMS, begin, end)
    counted = [each[0] for each in account.counts if begin <= each[0] <= end]
    seconds = counted[-1] - counted[0] if len(counted) > 1 else 0.0
    rate = datagrams / seconds if seconds else 0.0
    figures = {
        "switches": account.switches,
        "alarms": [event["event"] for event in alarms],
        "tcp_connections": opens,
        "longest_gap_ms": round(account.longest_gap() * 1000),
        "datagrams_a_second": round(rate, 1),
        "complete": account.complete,
        "underruns": account.underruns,
    }
    limits: dict[str, object] = {"switches": 0, "alarms": 0, "tcp_connections": 0}
    met = not account.switches and not alarms and not opens and account.complete
    if silence is not None:
        limits["datagrams_a_second"] = _MOST_PER_SECOND
        met = met and rate <= _MOST_PER_SECOND
    return line(6, what, figures, limits, met=met)


async def begin_pause(setting: Setting) -> None:
    """A client that is paused for long, beside all else; it takes none of the others' seats."""
    setting.aside["pause"] = asyncio.create_task(_paused(setting))


async def long_pause(setting: Setting) -> AsyncIterator[dict[str, object]]:
    """What became of it, when it is over."""
    paused = await cast(asyncio.Task[_Paused], setting.aside["pause"])
    account, begin, end = paused.account, paused.begin, paused.end
    settled = begin + _SETTLED
    before = account.sent(_DATAGRAMS, begin, settled) + account.sent(_SEGMENTS, begin, settled)
    after = account.sent(_DATAGRAMS, settled, end) + account.sent(_SEGMENTS, settled, end)
    opens = account.sent(_OPENS, 0.0, end)
    alarms = [each for each in account.named(*_ALARMS) if each["at"] <= end]
    heard = account.first_after(end)
    figures = {
        "paused_s": round(end - begin),
        "sent_in_first_30_s": before,
        "sent_after": after,
        "last_sent_after_s": _last_sent(account, begin, end),
        "tcp_connections": opens,
        "alarms": sorted({str(each["event"]) for each in alarms}),
        "heard_again_ms": None if heard is None else round((heard - end) * 1000),
        "trouble": account.trouble,
    }
    limits = {"sent_after": 0, "tcp_connections": 0, "alarms": 0}
    met = not after and not opens and not alarms and heard is not None
    yield line(6, "a paused client", figures, limits, met=met)


def _last_sent(account: Account, begin: float, end: float) -> int:
    """Seconds from the begin."""
    counts = [each for each in account.counts if begin <= each[0] <= end]
    pairs = pairwise(counts)
    sent = [later[0] for one, later in pairs if one[_DATAGRAMS:_OPENS] != later[_DATAGRAMS:_OPENS]]
    return round(sent[-1] - begin) if sent else 0


async def _paused(setting: Setting) -> _Paused:
    stage = setting.stage
    async with stage.seat(path(_RTT), _SEED, more=True) as seat:
        seat.go({"file": stage.noise(14.0).name}, counted=True)
        await seat.first_frame()
        await asyncio.sleep(_BEFORE_PAUSE)
        seat.do("pause")
        told = await seat.until(lambda each: each.get("what") == "pause", 5.0)
        begin = time.monotonic() if told is None else float(told["at"])
        await asyncio.sleep(setting.of(600, 40))
        end = time.monotonic()
        seat.do("resume")
        return _Paused(await seat.over(_RESUMED_WITHIN), begin, end)
