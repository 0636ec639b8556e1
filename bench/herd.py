"""A thousand clients come back after a restart: the pure policies of both sides, in virtual time.

The clients retry as ours do; the server admits by its rate and gives the others a slot each.
Nothing here waits or opens a socket: the same figures come out of every run with a seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush

from bench.report import Figures, machine, rounds
from tenuto.policy import AttachRate, CrowdTeller, Retries, RetryPolicy, return_within

__all__ = ["SCENARIOS", "Herd", "Scenario", "run", "stampede", "told"]

CLIENTS = 1000
_RATE, _BURST = 150.0, 150.0
_BIN = 0.1
_LONG = 10.0
_LATENCY = 0.005
"""Seconds from an attempt to the server's answer."""
_COMING = 0.1
"""Seconds between two listeners who come before anything is lost."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """How the herd begins. Times in seconds since the server went."""

    name: str
    back_at: float
    """When the server listens again; before that it refuses."""
    hinted: bool
    """Each client was told when to come back, one slot after the other."""
    buffered: float
    """Seconds that a client has still to play when it notices."""
    patience: float = 60.0


SCENARIOS = (
    Scenario("restart with NOTICE", back_at=0.5, hinted=True, buffered=2.0),
    Scenario("kill -9", back_at=1.0, hinted=False, buffered=2.0),
    Scenario("kill -9, back after 5 s", back_at=5.0, hinted=False, buffered=2.0),
    Scenario("kill -9, nothing buffered", back_at=1.0, hinted=False, buffered=0.0),
)


@dataclass(frozen=True, slots=True)
class Herd:
    """What came of it; `attempts` per 100 ms, refused and admitted alike."""

    attempts: list[int]
    admitted: list[float]
    given_up: int

    @property
    def mean(self) -> float:
        """Per 100 ms, of the first 10 s."""
        return sum(self.attempts[: round(_LONG / _BIN)]) / (_LONG / _BIN)

    @property
    def ratio(self) -> float:
        """The busiest 100 ms against the mean."""
        return max(self.attempts) / self.mean

    @property
    def fastest(self) -> int:
        """Most that were admitted in any second."""
        most, first = 0, 0
        for last, at in enumerate(self.admitted):
            while self.admitted[first] < at - 1.0:
                first += 1
            most = max(most, last - first + 1)
        return most


@cache
def told(clients: int) -> tuple[float, ...]:
    """What a server has told each of so many, who came one after the other.

    It tells doublings: some know of half the crowd, and few of all of it.
    """
    tellers: list[CrowdTeller] = []
    for number in range(1, clients + 1):
        seconds = return_within(number, _RATE)
        for teller in tellers:
            teller.due(seconds, number * _COMING)
        tellers.append(CrowdTeller(seconds))
    return tuple(teller.told for teller in tellers)


def stampede(scenario: Scenario, seed: int, *, clients: int = CLIENTS) -> Herd:
    """Every client from the cut until it is admitted or gives up."""
    draw = random.Random(seed).random
    policy = RetryPolicy(patience=scenario.patience)
    admission = AttachRate(_RATE, _BURST)
    retries = [Retries(policy) for _ in range(clients)]
    queue: list[tuple[float, int]] = []
    given_up = 0
    unheard = max(0.0, scenario.buffered - 0.5)
    crowds = told(clients)

    def again(client: int, now: float, retry_after: float, *, many: bool) -> None:
        nonlocal given_up
        wait = retries[client].next_wait(
            now,
            draw(),
            retry_after=retry_after,
            many=many,
            unheard=unheard,
            crowd=crowds[client],
        )
        if wait is None:
            given_up += 1
        else:
            heappush(queue, (now + wait, client))

    for client in range(clients):
        retries[client].interrupted(0.0)
        hint = 1.0 + client / _RATE if scenario.hinted else 0.0
        again(client, 0.0, hint, many=not scenario.hinted)
    times: list[float] = []
    admitted: list[float] = []
    while queue:
        now, client = heappop(queue)
        times.append(now)
        refused = None
        if now >= scenario.back_at:
            refused = admission.admit(now)
            if refused is None:
                admitted.append(now)
                continue
        # A port that refuses is gone for all; a refusal by the server has a time for each.
        hint = 0.0 if refused is None else refused.wait
        again(client, now + _LATENCY, hint, many=refused is None)
    bins = [0] * max(round(_LONG / _BIN), int(max(times) / _BIN) + 1)
    for at in times:
        bins[int(at / _BIN)] += 1
    return Herd(bins, admitted, given_up)


def run(quick: bool) -> Iterator[Figures]:
    """A line for each scenario, over many seeds; then the summary."""
    seeds = 5 if quick else 50
    summary: dict[str, object] = {}
    for scenario in SCENARIOS:
        herds = [stampede(scenario, seed) for seed in rounds(seeds, scenario.name)]
        line = {
            "attempts_ratio_worst": round(max(herd.ratio for herd in herds), 2),
            "busiest_100_ms": max(max(herd.attempts) for herd in herds),
            "attempts": max(sum(herd.attempts) for herd in herds),
            "admitted_a_second_most": max(herd.fastest for herd in herds),
            "all_admitted_after_s": round(max(herd.admitted[-1] for herd in herds), 2),
            "given_up": sum(herd.given_up for herd in herds),
        }
        summary[scenario.name] = line
        yield {"bench": "herd", "scenario": scenario.name, "seeds": seeds, **line}
    yield {
        "bench": "herd",
        "summary": True,
        "clients": CLIENTS,
        "attach_rate": _RATE,
        "attach_burst": _BURST,
        "scenarios": summary,
        **machine(),
    }
