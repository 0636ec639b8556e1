"""Whatever is killed, whenever: what a run made is gone, and nothing else is touched."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.netem.outer import Outer, Process, eventually, processes_with

SEED = 20_261_130
MOMENTS = 20

BUSY = "setsid sleep 60 & sleep 60 & ping -i 0.005 $NETEM_SERVER >/dev/null"
"""A daemon, a job and traffic."""

SERVE = "setsid sleep 60 & exec python3 -m http.server 8000"


@dataclass(frozen=True, slots=True)
class Networks:
    """Those of a run, as they were noted."""

    inodes: frozenset[int]
    noted: float
    """Seconds since the system's start."""

    def occupied(self) -> set[int]:
        """In which a process is that was there then. A later one is somebody else's, in a network
        that was given the number of one that is gone; a run's own ones are known by their mark.
        """
        found = set()
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                network = os.stat(folder / "ns/net").st_ino
                started = int((folder / "stat").read_text().rpartition(")")[2].split()[19])
                if network in self.inodes and started <= self.noted * os.sysconf("SC_CLK_TCK"):
                    found.add(network)
        return found


NONE = Networks(frozenset(), 0.0)


def own_networks(outer: Outer) -> Networks:
    """Those that the run's processes are in, but for the one it was started in."""
    inodes = {each.network for each in processes_with(outer.mark)} - {outer.namespace.inode}
    return Networks(frozenset(inodes), time.clock_gettime(time.CLOCK_BOOTTIME))


def assert_nothing_left(outer: Outer, before: dict[str, str], networks: Networks = NONE) -> None:
    def gone() -> bool:
        return not (outer.survivors() or networks.occupied()) and outer.state() == before

    if not eventually(gone):
        assert outer.survivors() == []
        assert networks.occupied() == set()
        assert outer.state() == before
    assert "qdisc tbf" in before["qdiscs"]


def running(outer: Outer) -> bool:
    return any(process.command.startswith("ping ") for process in processes_with(outer.mark))


def emulator_of(outer: Outer) -> Process:
    return next(each for each in processes_with(outer.mark) if "netem.emulator" in each.command)


@pytest.mark.parametrize("driver", ["tun", "veth"])
def test_the_harness_is_killed_at_any_moment(outer: Outer, driver: str) -> None:
    before = outer.state()
    moments = random.Random(f"{SEED}/{driver}")
    command = ["--driver", driver, "--", "sh", "-c", BUSY]
    begun = time.monotonic()
    first = outer.start("run", "loss5", *command)
    assert eventually(lambda: running(outer), 20)
    start_up = time.monotonic() - begun
    first.kill()
    first.communicate()
    assert_nothing_left(outer, before)
    in_full = 0
    for number in range(MOMENTS // 2):
        serve = ["--serve", SERVE] if number % 3 == 0 else []
        run = outer.start("run", "loss5", *serve, *command)
        moment = moments.uniform(0, 2 * start_up)
        time.sleep(moment)
        networks = own_networks(outer)
        in_full += bool(networks.inodes)
        run.kill()
        run.communicate()
        assert run.returncode == -signal.SIGKILL, f"ended by itself before {moment:.3f} s"
        assert_nothing_left(outer, before, networks)
    assert in_full > 0, "no moment was late enough to find the command running"


@pytest.mark.parametrize("driver", ["tun", "veth"])
def test_the_emulator_is_killed(outer: Outer, driver: str) -> None:
    before = outer.state()
    run = outer.start("run", "loss5", "--driver", driver, "--", "sh", "-c", f"{BUSY}; exit 0")
    assert eventually(lambda: running(outer))
    os.kill(emulator_of(outer).pid, signal.SIGKILL)
    _, err = run.communicate(timeout=10)
    assert run.returncode == 125
    assert "The emulator is gone (status -9" in err.decode()
    assert "Traceback" not in err.decode()
    assert_nothing_left(outer, before)


@pytest.mark.parametrize("victim", ["init", "keeper"])
def test_what_holds_the_command_is_killed(outer: Outer, victim: str) -> None:
    before = outer.state()
    run = outer.start("run", "loss5", "--", "sh", "-c", BUSY)
    assert eventually(lambda: running(outer))
    ours = processes_with(outer.mark)
    if victim == "init":
        pid = next(each.pid for each in ours if each.inner == 1)
    else:
        pid = next(
            each.pid
            for each in ours
            if each.pid not in (run.pid, emulator_of(outer).pid) and each.inner == each.pid
        )
    os.kill(pid, signal.SIGKILL)
    _, err = run.communicate(timeout=10)
    assert run.returncode == 137
    assert "status 137" in err.decode()
    assert_nothing_left(outer, before)


def test_the_command_ends_and_leaves_daemons(outer: Outer) -> None:
    before = outer.state()
    done = outer.netem("run", "loss5", "--", "sh", "-c", "setsid sleep 60 & exit 3")
    assert done.returncode == 3
    assert_nothing_left(outer, before)


def test_runs_at_once_have_networks_apart(outer: Outer) -> None:
    before = outer.state()
    # Each waits for a word, so that none has ended before the last has begun.
    command = "echo $NETEM_SERVER; read word; ping -qc3 -i0.05 $NETEM_SERVER"
    runs = [
        outer.start("run", "clear", "--", "sh", "-c", command, stdin=subprocess.PIPE)
        for _ in range(4)
    ]
    servers = [run.stdout.readline() for run in runs if run.stdout]
    assert len(set(servers)) == 4
    said = [run.communicate(b"on\n", timeout=20)[0].decode() for run in runs]
    assert [run.returncode for run in runs] == [0] * 4
    assert all(" 0% packet loss" in text for text in said)
    assert_nothing_left(outer, before)
