"""Networks that do not let UDP through: what it costs the first word, and the way back."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from bench.switching.account import Account
from bench.switching.conditions import farther
from bench.switching.scenario import Setting, all_of, line, milliseconds, worst_lag
from bench.switching.stage import Noise, Seat
from netem.catalogue import Catalogue
from netem.profile import Profile

__all__ = ["first_words", "way_back"]

_SEED: Final = 100
_PROFILES: Final = (
    "udp-blocked-drop",
    "udp-blocked-reject",
    "udp-blocked-prohibit",
    "udp-blocked-first-packet",
    "udp-blocked-after-handshake",
    "udp-blocked-throttled",
)
_RTT: Final = 0.080
_FIRST_TIME: Final = 0.300
_REMEMBERED: Final = 0.010
_AT_ONCE: Final = 2
"""Listeners: a handshake of one delays that of another."""
_MORE: Final = 0.3
"""Seconds of audio after the first frame."""
_NEVER: Final = 1e9

_COOL_DOWN: Final = 2.0
_REPROBE: Final = 2 * _COOL_DOWN
"""It doubles where QUIC was tried in vain meanwhile."""


@dataclass(slots=True)
class _Tried:
    profile: Profile
    tcp: list[Account]
    fresh: list[Account]
    again: list[Account]

    def accounts(self) -> list[Account]:
        return [*self.tcp, *self.fresh, *self.again]


async def first_words(setting: Setting) -> AsyncIterator[dict[str, object]]:
    """A line for each way of blocking: first audio against that of TCP on the same path."""
    noise = setting.stage.noise(4.0)
    near = [Catalogue().load(name) for name in _PROFILES]
    profiles = near if setting.quick else [*near, *(farther(each, _RTT) for each in near)]
    room = asyncio.Semaphore(_AT_ONCE)
    times = setting.of(7, 2)
    told = await all_of(
        "UDP blocked", (_tried(setting, noise, each, times, room) for each in profiles)
    )
    for tried in told:
        yield _line(tried)


async def _tried(
    setting: Setting, noise: Noise, profile: Profile, times: int, room: asyncio.Semaphore
) -> _Tried:
    tried = _Tried(profile, [], [], [])
    async with room, setting.stage.seat(profile, _SEED) as seat:
        # What a process pays once is no part of any figure.
        await _first(seat, noise, "tcp", None)
        for number in range(times):
            seat.bed.restart(profile, _SEED + number)
            tried.tcp.append(await _first(seat, noise, "tcp", None))
            with tempfile.TemporaryDirectory() as folder:
                seat.bed.restart(profile, _SEED + number)
                tried.fresh.append(await _first(seat, noise, "auto", folder))
                seat.bed.restart(profile, _SEED + number)
                tried.again.append(await _first(seat, noise, "auto", folder))
    return tried


async def _first(seat: Seat, noise: Noise, transport: str, memory: str | None) -> Account:
    seat.go({"file": noise.name}, transport=transport, memory=memory)
    await seat.until(lambda told: told["event"] == "first-frame", 20.0)
    await asyncio.sleep(_MORE)
    return await seat.end()


def _line(tried: _Tried) -> dict[str, object]:
    tcp, fresh, again = (
        [account.first_audio for account in accounts]
        for accounts in (tried.tcp, tried.fresh, tried.again)
    )
    slow, slower = _middle(fresh) - _middle(tcp), _middle(again) - _middle(tcp)
    figures = {
        "profile": tried.profile.name,
        "tcp_ms": milliseconds(tcp),
        "first_time_ms": milliseconds(fresh),
        "remembered_ms": milliseconds(again),
        "more_than_tcp_ms": [_shown(slow), _shown(slower)],
        "lag_ms": worst_lag(tried.accounts()),
        "trouble": sorted({each.trouble for each in tried.accounts() if each.trouble}),
    }
    limits = {"more_than_tcp_ms": [_FIRST_TIME * 1000, _REMEMBERED * 1000]}
    met = slow <= _FIRST_TIME and slower <= _REMEMBERED
    return line(1, "UDP blocked: first audio", figures, limits, met=met)


def _middle(values: list[float | None]) -> float:
    return median([_NEVER if value is None else value for value in values])


def _shown(seconds: float) -> float | None:
    """Milliseconds, where it ever came."""
    return round(seconds * 1000, 1) if abs(seconds) < _NEVER / 2 else None


async def way_back(setting: Setting) -> AsyncIterator[dict[str, object]]:
    """UDP passes again under a stream that plays by TCP; the cool-down is shortened."""
    noise = setting.stage.noise(setting.of(30, 16))
    seeds = range(_SEED, _SEED + setting.of(5, 2))
    told = await all_of("UDP passes again", (_back(setting, noise, seed) for seed in seeds))
    accounts = [account for account, _ in told]
    first = [account.first_after(at, "quic") for account, at in told]
    back = [when and when - at for when, (_, at) in zip(first, told, strict=True)]
    whole = sum(noise.is_whole(account) for account in accounts)
    figures = {
        "cool_down_s": _COOL_DOWN,
        "back_on_quic_ms": milliseconds(back),
        "identical": whole,
        "of": len(told),
        "concealed": sum(account.concealed for account in accounts),
        "reasons": sorted({each.get("reason", "") for a in accounts for each in a.named("moved")}),
        "trouble": [account.trouble for account in accounts if account.trouble],
    }
    limits: dict[str, object] = {"back_on_quic_ms": _REPROBE * 1000, "identical": len(told)}
    met = all(each is not None and each <= _REPROBE for each in back) and whole == len(told)
    yield line(1, "UDP passes again: back on QUIC", figures, limits, met=met)


async def _back(setting: Setting, noise: Noise, seed: int) -> tuple[Account, float]:
    """And the moment from which on UDP passes."""
    open_path = farther(Profile(name="open"), _RTT)
    blocked = replace(open_path, block=Catalogue().load("udp-blocked-drop").block)
    with tempfile.TemporaryDirectory() as folder:
        async with setting.stage.seat(blocked, seed) as seat:
            params = {"file": noise.name}
            seat.go(params, memory=folder, cool_down=_COOL_DOWN, interval=_COOL_DOWN)
            await seat.first_frame()
            await asyncio.sleep(1.0 + 0.5 * (seed % 5))
            seat.change(open_path, seed)
            passes = time.monotonic()
            return await seat.over(), passes
