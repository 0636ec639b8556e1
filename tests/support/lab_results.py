"""Results of a loss lab that never ran: plausible ones, and those that break a report."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from bench.lab.record import (
    Drop,
    Flow,
    Machine,
    ModeNote,
    ProfileNote,
    Results,
    Setting,
    Wave,
    Wire,
)

__all__ = ["EXTREMES", "MODES", "mutilated", "profile", "results", "setting"]

FRAME = 0.020
TEXT = """{name}: 5 % of packets lost at random each way, 40 ms each way
  both   delay 40 ms
  both   loss 5 %, each packet alone
  delay: ours: an 80 ms round trip
  loss: ours: five packets in a hundred"""

MODES: Final = (
    ModeNote(name="quic-stream", summary="Tenuto over QUIC: one stream", reference=False),
    ModeNote(name="tcp-cubic", summary="Tenuto over TCP, cubic", reference=False),
    ModeNote(name="tcp-bbr", summary="Tenuto over TCP, BBR", reference=False),
    ModeNote(name="ref-datagram", summary="a DATAGRAM per frame", reference=True),
    ModeNote(
        name="ref-datagram-floor",
        summary="a DATAGRAM per frame, window never below 32 KiB",
        reference=True,
    ),
    ModeNote(name="ref-streams", summary="a stream per frame", reference=True),
    ModeNote(
        name="ref-streams-floor",
        summary="a stream per frame, window never below 32 KiB",
        reference=True,
    ),
    ModeNote(
        name="ref-datagram-copy-floor",
        summary="each frame again one frame later, window never below 32 KiB",
        reference=True,
    ),
)

_OWN = {  # bytes on the wire beside the payload, by mode
    "quic-stream": 52, "tcp-cubic": 88, "tcp-bbr": 90, "ref-datagram": 48,
    "ref-datagram-floor": 48, "ref-streams": 50, "ref-streams-floor": 50,
    "ref-datagram-copy-floor": 740,
}  # fmt: skip


def profile(name: str = "rtt80-loss5") -> ProfileNote:
    return ProfileNote(
        name=name,
        summary="5 % of packets lost at random each way, 40 ms each way",
        text=TEXT.format(name=name),
    )


def setting(
    *,
    modes: Sequence[ModeNote] = MODES,
    profiles: Sequence[ProfileNote] | None = None,
    seeds: int = 10,
    seconds: float = 20.0,
) -> Setting:
    return Setting(
        modes=tuple(modes),
        profiles=tuple(profiles or (profile(),)),
        seeds=tuple(range(1, seeds + 1)),
        seconds=seconds,
        frame_size=640,
        command=f"tenuto lab --profile rtt80-loss5 --seeds {seeds}",
        started="2026-11-30T19:45:00+00:00",
        versions={
            "tenuto": "0.1.0", "aioquic": "1.7.2", "hypercorn": "0.18.0", "Python": "3.11.7",
            "kernel": "6.18.5", "cores": "2", "CPU": "Intel(R) Xeon(R) Processor @ 2.60GHz",
        },
        driver="tun",
    )  # fmt: skip


def results(
    *, asked: Setting | None = None, loss: float = 0.05, complete: bool = True, each: int = 2
) -> Results:
    """A whole run, `each` seeds a wave."""
    asked = asked or setting()
    waves: list[Wave] = []
    flows: list[Flow] = []
    for note in asked.profiles:
        for start in range(0, len(asked.seeds), each):
            seeds = asked.seeds[start : start + each]
            machine = _machine(random.Random(f"{note.name} {start}"))
            waves.append(Wave(profile=note.name, seeds=seeds, attempt=1, machine=machine))
            for seed in seeds:
                for mode in asked.modes:
                    flows.append(_flow(asked, mode.name, note.name, seed, len(waves) - 1, loss))
    return Results(setting=asked, waves=tuple(waves), flows=tuple(flows), complete=complete)


def _machine(rng: random.Random) -> Machine:
    return Machine(
        emulator_p99=rng.uniform(0.0001, 0.0006),
        emulator_max=rng.uniform(0.001, 0.006),
        behind=rng.uniform(0.001, 0.004),
        cores_busy=rng.uniform(0.35, 0.6),
        busiest=rng.uniform(0.3, 0.6),
        busiest_name="server",
        loop_lag=rng.uniform(0.001, 0.006),
        send_lag=rng.uniform(0.001, 0.003),
    )


def _flow(asked: Setting, mode: str, path: str, seed: int, wave: int, loss: float) -> Flow:
    rng = random.Random(f"{mode} {path} {seed}")
    frames = round(asked.seconds / FRAME)
    drops = tuple(
        Drop(
            at=rng.uniform(0, asked.seconds), way=rng.choice(("up", "down")), cause="lost"
        )
        for _ in range(round(2 * loss * frames))
    )  # fmt: skip
    delays = _delays(rng, mode, frames, loss)
    size = 640 + _OWN.get(mode, 60)
    return Flow(
        mode=mode,
        profile=path,
        seed=seed,
        wave=wave,
        delays=tuple(delays),
        handshake=0.082 + 0.16 * (rng.random() < 3 * loss) + rng.uniform(0, 0.004),
        first_audio=0.165 + 0.2 * (rng.random() < 3 * loss) + rng.uniform(0, 0.006),
        down=Wire(packets=frames, size=frames * size + 6000, dropped=round(loss * frames)),
        up=Wire(packets=frames // 2, size=frames * 26, dropped=round(loss * frames / 2)),
        drops=tuple(sorted(drops, key=lambda drop: drop.at)),
    )


def _delays(rng: random.Random, mode: str, frames: int, loss: float) -> list[float | None]:
    """One way 40 ms; a lost frame comes again a round trip and a frame later, or never."""
    base = [0.040 + rng.expovariate(4000) for _ in range(frames)]
    delays: list[float | None] = list(base)
    ordered = mode in {"quic-stream", "tcp-cubic", "tcp-bbr"}
    slow = {"tcp-cubic": 1.6, "tcp-bbr": 1.15}.get(mode, 1.0)
    blocked = 0.0
    for number in range(frames):
        due = number * FRAME
        tries = 0
        while rng.random() < loss and tries < 6:
            tries += 1
        if "datagram" in mode:
            if tries and not ("copy" in mode and rng.random() >= loss):
                delays[number] = None
            elif tries:
                delays[number] = base[number] + FRAME
            continue
        repair = sum(0.101 * slow * 2**n for n in range(tries))
        if tries and rng.random() < 0.3:
            repair += rng.uniform(0.0, 0.06)
        came = due + base[number] + repair
        if ordered:
            blocked = max(blocked, came)
            came = blocked
        delays[number] = came - due
    return delays


def _one_mode() -> Results:
    return results(asked=setting(modes=MODES[:1]))


def _one_seed() -> Results:
    return results(asked=setting(seeds=1))


def _nothing_came() -> Results:
    whole = results(asked=setting(seeds=2, seconds=4))
    dead = tuple(
        replace(
            flow, delays=(), handshake=None, first_audio=None, trouble="no connection within 10 s"
        )
        for flow in whole.flows
    )
    return replace(whole, flows=dead)


def _troubled() -> Results:
    """One mode dies in the middle, another never begins in some seeds."""
    whole = results()
    flows = []
    for flow in whole.flows:
        if flow.mode == "tcp-bbr":
            flow = replace(flow, delays=flow.delays[:400], trouble="the connection was reset")
        elif flow.mode == "ref-streams" and flow.seed in {3, 4, 7}:
            flow = replace(
                flow, delays=(), handshake=None, first_audio=None, trouble="no connection in 10 s"
            )
        flows.append(flow)
    return replace(whole, flows=tuple(flows))


def _no_valid_wave() -> Results:
    whole = results(asked=setting(seeds=2, seconds=4))
    fault = "emulator late, 99th percentile: 4.2 ms, the limit is 1.0 ms"
    return replace(
        whole, waves=tuple(replace(wave, attempt=2, faults=(fault,)) for wave in whole.waves)
    )


def _some_invalid() -> Results:
    whole = results()
    fault = ("all cores busy: 97 %, the limit is 90 %",)
    first = replace(whole.waves[1], faults=fault)
    waves = (whole.waves[0], first, *whole.waves[2:])
    again = replace(whole.waves[1], attempt=2)
    repeated = tuple(replace(flow, wave=len(waves)) for flow in whole.flows if flow.wave == 1)
    return replace(whole, waves=(*waves, again), flows=(*whole.flows, *repeated))


def _many_profiles() -> Results:
    notes = [profile(f"profile-{number}") for number in range(45)]
    return results(asked=setting(modes=MODES[:3], profiles=notes, seeds=2, seconds=1))


def _long_names() -> Results:
    modes = [
        replace(mode, name=f"{mode.name}-{'very-' * 30}long-name", summary="and " * 200)
        for mode in MODES[:4]
    ]
    notes = [profile("p" * 300)]
    return results(asked=setting(modes=modes, profiles=notes, seeds=2, seconds=4))


HOSTILE: Final = '<script>alert("1")</script>'


def _hostile() -> Results:
    modes = [
        replace(
            mode, name=f"{HOSTILE}{number}", summary=f"</title>{HOSTILE}&amp;\x00\x1b[31m\ud800"
        )
        for number, mode in enumerate(MODES[:3])
    ]
    bad = ProfileNote(name=f"'\">{HOSTILE}", summary=f"-->{HOSTILE}\u202e", text=f"</pre>{HOSTILE}")
    asked = replace(
        setting(modes=modes, profiles=[bad], seeds=2, seconds=4),
        command=f"tenuto lab --profile '{HOSTILE}'",
        started=HOSTILE,
        versions={HOSTILE: HOSTILE},
        driver=HOSTILE,
    )
    whole = results(asked=asked)
    flows = tuple(replace(flow, trouble=HOSTILE) for flow in whole.flows)
    waves = (replace(whole.waves[0], machine=replace(whole.waves[0].machine, unscheduled=HOSTILE)),)
    return replace(whole, flows=flows, waves=waves)


def _empty() -> Results:
    return Results(setting=setting())


EXTREMES: Final[dict[str, Callable[[], Results]]] = {
    "plausible": results,
    "no loss": lambda: results(loss=0.0),
    "one seed": _one_seed,
    "one mode": _one_mode,
    "nothing came": _nothing_came,
    "troubled": _troubled,
    "no valid wave": _no_valid_wave,
    "some invalid": _some_invalid,
    "many profiles": _many_profiles,
    "three profiles": lambda: results(
        asked=setting(
            profiles=[profile(name) for name in ("rtt80", "rtt80-loss5", "loss10")],
            modes=MODES[:4],
            seconds=2,
        )
    ),
    "long names": _long_names,
    "hostile": _hostile,
    "interrupted": lambda: replace(results(asked=setting(seeds=4)), complete=False),
    "empty": _empty,
}
"""By what is extreme about them."""


_WRONG: Final[tuple[Any, ...]] = (
    None, True, "", "x", 1, 0, -1, 0.5, 10**400, 1e308, float("nan"), float("inf"), [], [None], {},
    {"x": 1},
)  # fmt: skip
_GONE: Final = object()


def mutilated() -> Iterator[tuple[str, str]]:
    """Small results of which one thing is another: its path, and the text."""
    asked = setting(modes=MODES[:2], seeds=1, seconds=0.1)
    whole = json.loads(results(asked=asked).to_json())
    for path in _paths(whole):
        for wrong in (*_WRONG, _GONE):
            made = copy.deepcopy(whole)
            *before, last = path
            inside = made
            for step in before:
                inside = inside[step]
            if wrong is _GONE:
                del inside[last]
            else:
                inside[last] = wrong
            yield ".".join(map(str, path)), json.dumps(made)


def _paths(told: Any) -> Iterator[tuple[Any, ...]]:
    """To everything, the first of a list for all of it."""
    if isinstance(told, dict):
        steps: list[Any] = list(told)
    else:
        steps = [0] if isinstance(told, list) and told else []
    for step in steps:
        yield (step,)
        yield from ((step, *further) for further in _paths(told[step]))
