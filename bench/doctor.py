"""`tenuto doctor` on networks whose illness is known: how often does it name it?

Each run is the command itself, in a bed of its own with a seed of its own, against one server.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.process import ServerProcess
from bench.report import Figures, machine, progress
from netem.catalogue import Catalogue
from netem.drivers.linkbed import LinkBed
from netem.drivers.tun import TunBed
from netem.drivers.veth import VethBed
from netem.errors import ImpairmentError
from netem.kernel.interfaces import configure
from netem.kernel.namespaces import Namespace
from netem.profile import Conditions, Mtu, Nat, Profile
from tenuto.tls import DevCertificates

__all__ = ["ACCEPTANCE", "Condition", "Ward", "condition_of", "run", "ward", "wrong"]

RUNS: Final = 20
QUICK_RUNS: Final = 1
LANES: Final = 6
"""Beds at a time: a run waits far more than it computes."""

_MOST_SECONDS: Final = 240.0
_LATEST: Final = 8.0
"""Seconds into a path's time at which the command begins, at random: outages have their hours."""

Expected = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Condition:
    """`expected` is by path into the command's JSON, such as `udp.state`; a tuple lists what is
    right.
    """

    profile: Profile
    expected: Expected
    options: tuple[str, ...] = ("--nat", "0")

    @property
    def name(self) -> str:
        return self.profile.name


def _udp(profile: str, state: str, after: int | None = None) -> Condition:
    expected = {"udp.state": state, "udp.dies_after": after, "transport": "tcp", "status": 1}
    return Condition(Catalogue().load(profile), expected)


def _nat(profile: Profile, limit: str, **expected: object) -> Condition:
    right = {"udp.state": "open", **{f"nat.{name}": value for name, value in expected.items()}}
    return Condition(profile, right, ("--nat", limit))


def _mtu(name: str, size: int, *, told: bool) -> Condition:
    side = Conditions(delay=0.02, mtu=Mtu(size=size, answers=told))
    return condition_of(Profile(name=name, up=side, down=side))


_SOMEBODY: Final = "somebody"
"""Any value but none."""

_SIDE = Conditions(delay=0.02)
_NAT_10 = Profile(name="nat-idle-10s", up=_SIDE, down=_SIDE, nat=Nat(idle=10.0))


def condition_of(profile: Profile) -> Condition:
    """What doctor should say of a profile that blocks no UDP: nothing that is not there."""
    mtu = profile.up.mtu
    expected: dict[str, object] = {
        "udp.state": "open",
        "transport": "quic",
        "mtu.bytes": 1500 if mtu is None else mtu.size,
    }
    if mtu is not None:
        expected["mtu.told_by"] = _SOMEBODY if mtu.answers else None
    if profile.nat is None:
        # An exchange may fail where half of all packets are lost.
        expected["nat.binding"] = ("no-translation", None)
    return Condition(profile, expected)


def _acceptance() -> tuple[Condition, ...]:
    load = Catalogue().load
    return (
        _udp("udp-blocked-drop", "blocked"),
        _udp("udp-blocked-reject", "rejected"),
        _udp("udp-blocked-prohibit", "prohibited"),
        _udp("udp-blocked-first-packet", "first-packet-only", 1),
        _udp("udp-blocked-after-handshake", "flow-dies", 20),
        _udp("udp-blocked-throttled", "throttled"),
        _nat(load("nat-idle-30s"), "35", binding="forgotten", kept=21.0, forgotten_within=33.0),
        _nat(_NAT_10, "21", binding="forgotten", kept=6.0, forgotten_within=11.0),
        _nat(load("nat-rebind-5s"), "12", binding="rebinds"),
        condition_of(load("mtu-1280")),
        condition_of(load("mtu-blackhole")),
        _mtu("mtu-1400", 1400, told=True),
        _mtu("mtu-1400-blackhole", 1400, told=False),
    )


ACCEPTANCE = _acceptance()


def everything() -> tuple[Condition, ...]:
    """Those of the acceptance, then all other built-in profiles."""
    known = {condition.name for condition in ACCEPTANCE}
    catalogue = Catalogue()
    others = [catalogue.load(name) for name in catalogue.names() if name not in known]
    return (*ACCEPTANCE, *map(condition_of, others))


def wrong(condition: Condition, told: Mapping[str, Any]) -> list[str]:
    """What doctor's JSON says otherwise than expected."""
    faults = []
    for path, right in condition.expected.items():
        value: Any = told
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        rights = right if isinstance(right, tuple) else (right,)
        if value not in rights and not (_SOMEBODY in rights and value):
            faults.append(f"{path} = {value!r}, not {right!r}")
    return faults


@dataclass(frozen=True, slots=True)
class Ward:
    """A server in a network of its own, to which beds lead."""

    namespace: Namespace
    server: ServerProcess

    def bed(self, profile: Profile, seed: int) -> LinkBed:
        try:
            return TunBed(profile, seed, server=self.namespace, localhost=True)
        except ImpairmentError:
            return VethBed(profile, seed, server=self.namespace, localhost=True)

    def command(self, *options: str) -> list[str]:
        here = f"127.0.0.1:{self.server.port}"
        return [
            sys.executable,
            "-m",
            "tenuto.cli",
            "doctor",
            here,
            "--ca",
            str(self.server.ca),
            *options,
        ]

    def examine(self, condition: Condition, seed: int, begin: float = 0.0) -> dict[str, Any]:
        """The command's JSON; it starts `begin` seconds into the time of the path."""
        with self.bed(condition.profile, seed) as bed:
            time.sleep(begin)
            process = bed.client.popen(
                self.command("--json", *condition.options),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            said, complained = process.communicate(timeout=_MOST_SECONDS)
            bed.check()
        try:
            told: dict[str, Any] = json.loads(said)
        except ValueError:
            raise RuntimeError(f"{condition.name}: {said!r} {complained!r}") from None
        if process.returncode != told["status"]:
            raise RuntimeError(f"{condition.name}: status {process.returncode} {complained!r}")
        return told


@contextmanager
def ward(certificates: Path) -> Iterator[Ward]:
    """`certificates` is a folder with a development pair."""
    with Namespace.new() as namespace:
        configure(namespace, ["link set dev lo up"])
        with namespace.entered():
            server = ServerProcess(certificates)
        try:
            yield Ward(namespace, server)
        finally:
            server.stop()


@dataclass(frozen=True, slots=True)
class _Outcome:
    seconds: float
    faults: tuple[str, ...]


def run(quick: bool, names: Sequence[str] = ()) -> Iterator[Figures]:
    """A line for each condition, the summary last; `names` leaves out all others."""
    count = QUICK_RUNS if quick else RUNS
    outcomes: list[_Outcome] = []
    chosen = [c for c in everything() if not names or c.name in names]
    with tempfile.TemporaryDirectory() as folder:
        DevCertificates(Path(folder) / "dev").ensure(datetime.now(UTC))
        with ward(Path(folder) / "dev") as there:
            yield from _all(there, chosen, count, outcomes)
    right = sum(not outcome.faults for outcome in outcomes)
    yield {"bench": "doctor", "right": right, "total": len(outcomes), **machine()}


def _all(
    there: Ward, chosen: Sequence[Condition], count: int, outcomes: list[_Outcome]
) -> Iterator[Figures]:
    """A line for each condition as soon as it is done; every outcome goes to `outcomes`."""
    waiting = [(condition, seed) for seed in range(1, count + 1) for condition in chosen]
    found: dict[str, list[_Outcome]] = {condition.name: [] for condition in chosen}
    with ThreadPoolExecutor(LANES) as pool, progress("doctor") as tell:
        running = {
            pool.submit(_one, there, condition, seed): condition for condition, seed in waiting
        }
        for done in as_completed(running):
            condition = running[done]
            found[condition.name].append(done.result())
            outcomes.append(done.result())
            tell(len(outcomes) / len(waiting))
            if len(found[condition.name]) == count:
                yield _figures(condition, found[condition.name])


def _one(there: Ward, condition: Condition, seed: int) -> _Outcome:
    begin = random.Random(f"{condition.name}/{seed}").uniform(0.0, _LATEST)
    started = time.monotonic()
    told = there.examine(condition, seed, begin)
    return _Outcome(time.monotonic() - started - begin, tuple(wrong(condition, told)))


def _figures(condition: Condition, outcomes: Sequence[_Outcome]) -> Figures:
    faults = Counter(fault for outcome in outcomes for fault in outcome.faults)
    seconds = [outcome.seconds for outcome in outcomes]
    return {
        "condition": condition.name,
        "right": sum(not outcome.faults for outcome in outcomes),
        "total": len(outcomes),
        "seconds": {"median": round(median(seconds), 1), "longest": round(max(seconds), 1)},
        "wrong": dict(faults),
    }
