"""Streams that are silent for a good reason: nothing may come of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from bench.switching.account import Account
from bench.switching.conditions import path
from bench.switching.scenario import Setting, all_of, line

__all__ = ["Pause", "quiet_ones"]

_RTT: Final = 0.060
_SEED: Final = 600
_STALL: Final = 3.0
_BEFORE_STALL: Final = 25
"""Steps of the model, of 160 ms, in real time."""
_MOST_PER_SECOND: Final = 12.0
"""UDP datagrams of a client in a silence: KEEPALIVE comes five times a second and is
acknowledged, and a heartbeat once."""
_SETTLED: Final = 30.0
"""Seconds of a pause, after which nothing is sent."""
_RESUMED_WITHIN: Final = 15.0

_DATAGRAMS, _SEGMENTS, _OPENS = 1, 2, 3


async def quiet_ones(setting: Setting) -> AsyncIterator[dict[str, object]]:
    """A source that pauses, and chunks that are far apart."""
    model = {
        "source": "model",
        "seconds": 8,
        "rtf": 1,
        "stall_every": _BEFORE_STALL,
        "stall": _STALL,
    }
    chunks = {"file": setting.stage.noise(12.0).name, "chunk": 10}
    pause, chunked = await all_of("quiet ones", [_heard(setting, model), _heard(setting, chunks)])
    yield _line("a source that pauses for 3 s", pause, _silence(pause))
    yield _line("10 frames a chunk", chunked, None)


async def _heard(setting: Setting, params: dict[str, str | int | float]) -> Account:
    async with setting.stage.seat(path(_RTT), _SEED) as seat:
        seat.go(params, counted=True)
        await seat.first_frame()
        return await seat.over()


def _silence(account: Account) -> tuple[float, float]:
    """The longest gap."""
    pairs = zip(account.arrivals, account.arrivals[1:], strict=False)
    return max(((one.at, other.at) for one, other in pairs), key=lambda gap: gap[1] - gap[0])


def _line(what: str, account: Account, silence: tuple[float, float] | None) -> dict[str, object]:
    opens = account.sent(_OPENS, 0.0, float("inf"))
    alarms = account.named("suspected", "moved", "stayed", "interrupted")
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


class Pause:
    """A client that is paused for long, beside all else; it needs no seat of the others'."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.seconds = float(setting.of(600, 40))
        self._task = asyncio.ensure_future(self._run())

    async def line(self) -> dict[str, object]:
        """When it is over."""
        account, paused, ended = await self._task
        after = account.sent(_DATAGRAMS, paused + _SETTLED, ended)
        after += account.sent(_SEGMENTS, paused + _SETTLED, ended)
        opens = account.sent(_OPENS, 0.0, ended)
        counts = [each for each in account.counts if paused <= each[0] <= ended]
        pairs = zip(counts, counts[1:], strict=False)
        sent = [
            (round(two[0] - paused), two[1] + two[2])
            for one, two in pairs
            if two[1] + two[2] > one[1] + one[2]
        ]
        alarms = account.named("suspected", "moved", "stayed", "interrupted")
        resumed = account.first_after(ended)
        figures = {
            "paused_s": self.seconds,
            "sent_in_first_30_s": account.sent(_DATAGRAMS, paused, paused + _SETTLED)
            + account.sent(_SEGMENTS, paused, paused + _SETTLED),
            "sent_after": after,
            "last_sent_after_s": sent[-1][0] if sent else 0,
            "tcp_connections": opens,
            "alarms": sorted({str(event["event"]) for event in alarms if event["at"] <= ended}),
            "heard_again_ms": None if resumed is None else round((resumed - ended) * 1000),
            "trouble": account.trouble,
        }
        limits: dict[str, object] = {"sent_after": 0, "tcp_connections": 0, "alarms": 0}
        met = not after and not opens and not figures["alarms"]
        return line(6, "a paused client", figures, limits, met=met)

    async def _run(self) -> tuple[Account, float, float]:
        """With the moments of the pause and of its end."""
        stage = self._setting.stage
        async with stage.seat(path(_RTT), _SEED, more=True) as seat:
            seat.go({"file": stage.noise(14.0).name}, counted=True)
            await seat.first_frame()
            await seat.pause(3.0)
            seat.do("pause")
            told = await seat.until(lambda each: each.get("what") == "pause", 5.0)
            paused = seat.now() if told is None else float(told["at"])
            await seat.pause(self.seconds)
            ended = seat.now()
            seat.do("resume")
            await seat.pause(_RESUMED_WITHIN if self.seconds > 60 else 5.0)
            return await seat.end(), paused, ended
