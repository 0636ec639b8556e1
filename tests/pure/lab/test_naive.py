"""Every figure of a flow again, by loops that know nothing of the code that makes the report."""

from __future__ import annotations

import math
import random
from statistics import fmean, median

import pytest

from bench.lab.figures import FIGURES, PLAYOUT, ModeTable, figure, tables
from bench.lab.record import Flow, Machine, Results, Wave, Wire
from tests.support.lab_results import MODES, setting

FRAMES, SIZE = 50, 640
INF = math.inf


def flow(rng: random.Random, mode: str, seed: int) -> Flow:
    """With lost, late, bunched and swapped frames; some end early, some never begin."""
    length = rng.choice((FRAMES, FRAMES, FRAMES, 20, 0))
    delays = [
        None if rng.random() < 0.1 else round(0.04 + rng.choice((0.0, rng.expovariate(12))), 5)
        for _ in range(length)
    ]
    began = rng.random() < 0.9
    return Flow(
        mode=mode,
        profile="rtt80-loss5",
        seed=seed,
        wave=0,
        delays=tuple(delays),
        handshake=rng.uniform(0.08, 1.0) if began else None,
        first_audio=rng.uniform(0.1, 1.2) if began else None,
        up=Wire(packets=30, size=rng.randrange(3000)),
        down=Wire(packets=50, size=rng.randrange(40_000)),
    )


def made(seed: int) -> Results:
    rng = random.Random(seed)
    asked = setting(modes=MODES[:3], seeds=4, seconds=FRAMES * 0.02)
    flows = tuple(flow(rng, mode.name, each) for mode in asked.modes for each in asked.seeds)
    wave = Wave(profile="rtt80-loss5", seeds=asked.seeds, attempt=1, machine=Machine())
    return Results(setting=asked, waves=(wave,), flows=flows, complete=True)


def naive(flow: Flow, floor: float) -> dict[str, float]:
    late = [
        INF if delay is None else round(delay - floor, 6)
        for delay in [*flow.delays, *[None] * (FRAMES - len(flow.delays))]
    ]
    told = {
        "never": sum(each == INF for each in late) / FRAMES,
        "concealed": sum(each > 0.150 for each in late) / FRAMES * 60,
        "unheard": longest(late, 0.150) * 0.02,
        "silence": silence(late),
        "jitter": jitter(late),
        "handshake": INF if flow.handshake is None else flow.handshake,
        "first_audio": INF if flow.first_audio is None else flow.first_audio,
        "down": flow.down.size * 8 / (FRAMES * 0.02),
        "up": flow.up.size * 8 / (FRAMES * 0.02),
        "overhead": (flow.up.size + flow.down.size) / (FRAMES * SIZE),
    }
    for name, percent in (("p50", 50), ("p95", 95), ("p99", 99)):
        told[name] = next(
            each
            for each in sorted(late)
            if sum(other <= each for other in late) * 100 >= percent * FRAMES
        )
    for playout in PLAYOUT:
        at = f"{1000 * playout:.0f}"
        told[f"late_or_lost_{at}"] = sum(each > playout for each in late) / FRAMES
        told[f"r_{at}"], told[f"mos_{at}"] = rated(late, playout, floor + playout + 0.02)
    return told


def longest(late: list[float], playout: float) -> int:
    best = run = 0
    for each in late:
        run = run + 1 if each > playout else 0
        best = max(best, run)
    return best


def silence(late: list[float]) -> float:
    times = sorted(number * 0.02 + each for number, each in enumerate(late) if each < INF)
    moments = [0.0, *times]
    end = (FRAMES - 1) * 0.02
    moments.append(end if not times else max(end, times[-1]))
    worst = 0.0
    for number in range(1, len(moments)):
        worst = max(worst, moments[number] - moments[number - 1])
    return worst


def jitter(late: list[float]) -> float:
    """RFC 3550, appendix A.8, by transit times."""
    packets = [(number * 0.02 + each, number * 0.02) for number, each in enumerate(late)]
    packets = sorted(packet for packet in packets if packet[0] < INF)
    if len(packets) < 2:
        return math.nan
    estimate, seen = 0.0, []
    transit = packets[0][0] - packets[0][1]
    for arrival, sent in packets[1:]:
        difference = abs(arrival - sent - transit)
        transit = arrival - sent
        estimate += (difference - estimate) / 16.0
        seen.append(estimate)
    return fmean(seen)


def rated(late: list[float], playout: float, delay: float) -> tuple[float, float]:
    lost = [each > playout for each in late]
    if all(lost):
        return 0.0, 1.0
    share = sum(lost) / FRAMES
    starts = sum(now and not before for before, now in zip([False, *lost], lost, strict=False))
    burst = max(1.0, sum(lost) / starts / (1 / (1 - share))) if starts else 1.0
    x = math.log(delay / 0.1) / math.log(2)
    idd = 25 * ((1 + x**6) ** (1 / 6) - 3 * (1 + (x / 3) ** 6) ** (1 / 6) + 2)
    ppl = 100 * share
    r = 93.2 - (idd if delay > 0.1 else 0) - 95 * ppl / (ppl / burst + 25.1)
    mos = 1.0 if r <= 0 else 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6
    return r, max(1.0, mos)


@pytest.mark.parametrize("seed", range(8))
def test_every_figure_is_what_loops_make_of_it(seed: int) -> None:
    results = made(seed)
    (table,) = tables(results)
    delays = [each for flow in results.flows for each in flow.delays if each is not None]
    assert table.floor == min(delays)
    for mode in table.modes:
        by_seed = {
            flow.seed: naive(flow, min(delays)) for flow in results.flows if flow.mode == mode.name
        }
        for shown in FIGURES:
            wanted = [each[shown.name] for each in by_seed.values()]
            found = [mode.values[shown.name][number] for number in by_seed]
            same(found, wanted, f"seed {seed}, {mode.name}, {shown.name}")
        middle(mode, by_seed)


def same(found: list[float], wanted: list[float], told: str) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one == pytest.approx(other, abs=2e-6, rel=1e-9, nan_ok=True), told


def middle(mode: ModeTable, by_seed: dict[int, dict[str, float]]) -> None:
    """The mean of the seeds, or their median and worst."""
    for name, found in mode.estimates.items():
        values = [each[name] for each in by_seed.values() if not math.isnan(each[name])]
        if figure(name).typical:
            assert found.value == pytest.approx(median(values), abs=2e-6)
            assert found.high == pytest.approx(max(values), abs=2e-6)
        elif values:
            assert found.value == pytest.approx(fmean(values), abs=2e-6)
