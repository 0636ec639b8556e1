"""`python -m netem measure`: the verdict, its exit status, and its report."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from netem.errors import ImpairmentError
from netem.kernel.namespaces import Namespace
from tests.support.machine import needs_machine


def netem(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "netem", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def can_make_beds() -> bool:
    try:
        Namespace.new().close()
    except ImpairmentError:
        return False
    return True


needs_beds = pytest.mark.skipif(not can_make_beds(), reason="no namespaces here")


@needs_beds
@pytest.mark.parametrize("driver", ["auto", "veth"])
def test_measured_stands_beside_set(driver: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = netem(
        *("measure", "loss5", "--driver", driver, "--packets", "3000", "--seed", "1", "-6"),
        *("--json", str(report)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "IPv6, seed 1: 3,000 packets of 100 bytes each way, 4000 a second" in done.stdout
    told = json.loads(report.read_text())
    assert (told["profile"], told["family"], told["seed"]) == ("loss5", "ipv6", 1)
    assert told["agrees"] is True
    rows = {(row["way"], row["figure"]): row for row in told["rows"]}
    loss = rows["up", "loss"]
    assert (loss["expected"], loss["agrees"]) == (0.05, True)
    assert loss["measured"] == len(told["directions"]["up"]["lost"]) / 3000
    assert rows["down", "delay, median"]["expected"] == 0.03


def test_a_relay_needs_no_privileges() -> None:
    argv = ("measure", "loss20", "--driver", "relay", "--packets", "1000", "--seed", "2")
    done = netem(*argv)
    if done.returncode == 1 and os.geteuid() != 0:
        # An ordinary process, which a busy neighbour holds up.
        done = netem(*argv)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "loss20 through relay, IPv4" in done.stdout


def test_a_path_that_does_something_else_is_no_success(tmp_path: Path) -> None:
    # A relay turns bits of payloads alone, where a network would of headers too.
    (tmp_path / "noise.toml").write_text('summary = "noise"\n[both]\ncorrupt = "100%"\n')
    profile = str(tmp_path / "noise.toml")
    done = netem("measure", profile, "--driver", "relay", "--packets", "500", "--seed", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "does not agree" in done.stdout


def test_a_relay_through_a_nat_learns_where_its_client_is() -> None:
    done = netem(
        "measure", "nat-rebind-5s", "--driver", "relay", "--packets", "1000", "--seed", "3"
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("nonsense",), 2, "there is no profile of this name"),
        (("loss5", "--rate", "1e9"), 2, "Invalid value for '--rate'"),
        (("loss5", "--size", "4"), 2, "Invalid value for '--size'"),
        (("loss5", "--driver", "relay", "--json", "/nowhere/x"), 125, "--json /nowhere/x: No such"),
        (("udp-blocked-prohibit", "--driver", "relay"), 125, "use the driver tun or veth"),
    ],
)
def test_what_cannot_be_measured_is_said_in_a_line(
    arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = netem("measure", *arguments)
    assert done.returncode == status
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@needs_machine
@pytest.mark.timeout(120)
def test_a_real_netem_is_measured_like_any_other_driver() -> None:
    argv = ("measure", "loss5", "--driver", "vm", "--packets", "3000", "--rate", "2000")
    # It has no seed: once in a few hundred runs chance alone does not agree, hardly twice.
    done = netem(*argv)
    if done.returncode == 1:
        done = netem(*argv)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "loss5 through vm, IPv4" in done.stdout


def test_a_machine_that_is_not_there_is_said_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for verb in (("measure", "loss5", "--driver", "vm"), ("agree", "loss5")):
        done = netem(*verb)
        assert done.returncode == 125
        assert "run python -m netem.vm" in done.stderr or "not installed" in done.stderr
        assert "Traceback" not in done.stderr
