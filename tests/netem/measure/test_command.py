"""`python -m netem measure`: the verdict, its exit status, and its report."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from netem.errors import ImpairmentError
from netem.kernel.namespaces import Namespace
from tests.netem.outer import Outer, eventually
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
        (("loss5", "-6", "--size", "1453"), 2, "over IPv6 no more than 1452 bytes fit"),
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
    assert "loss5 through vm, IPv4, no seed:" in done.stdout


def test_a_machine_that_is_not_there_is_said_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for verb in (("measure", "loss5", "--driver", "vm"), ("agree", "loss5")):
        done = netem(*verb)
        assert done.returncode == 125
        assert "run python -m netem.vm" in done.stderr or "not installed" in done.stderr
        assert "Traceback" not in done.stderr


def netem_over(other: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`measure` of one profile over the path of another."""
    code = (
        "import sys; import netem.cli.measuring as m; from netem.cli.main import main; "
        "from netem.catalogue import Catalogue; right = m.Relay; "
        f"m.Relay = lambda profile, *rest: right(Catalogue().load({other!r}), *rest); "
        "sys.argv[0] = 'netem'; main()"
    )
    argv = [sys.executable, "-c", code, "measure", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def test_a_path_that_does_something_else_is_no_success() -> None:
    done = netem_over("loss20", "loss5", "--driver", "relay", "--packets", "500", "--seed", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "does not agree" in done.stdout


def test_a_relay_is_not_blamed_for_headers_it_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "noise.toml").write_text('summary = "noise"\n[both]\ncorrupt = "50%"\n')
    profile = str(tmp_path / "noise.toml")
    done = netem("measure", profile, "--driver", "relay", "--packets", "500", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "corrupted" in done.stdout


def test_whom_a_relay_lets_nothing_through_to_is_not_judged() -> None:
    done = netem("measure", "udp-blocked-drop", "--driver", "relay", "--packets", "100")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not tried: down: anything, for nothing came" in done.stdout


@needs_beds
def test_a_host_that_sends_nothing_is_blamed_itself(tmp_path: Path) -> None:
    for arguments, words in (
        ((), "netem: this host refuses to send: Network is unreachable"),
        (("-6", "--json", str(tmp_path / "x")), "netem: ::1 port 0: Cannot assign requested"),
    ):
        argv = ("measure", "loss5", "--driver", "relay", "--packets", "20", *arguments)
        # Its loopback is down.
        with Namespace.new() as alone, alone.entered():
            done = netem(*argv)
        assert done.returncode == 125
        assert words in done.stderr
        assert "Traceback" not in done.stderr


@needs_beds
def test_ctrl_c_in_the_middle_is_a_line_and_leaves_nothing(outer: Outer) -> None:
    process = outer.start("measure", "loss5", "--driver", "veth")
    assert eventually(lambda: any("measure.worker" in one for one in outer.survivors()), 20.0)
    time.sleep(0.3)
    # As a terminal does: to the whole group.
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert (process.returncode, said.decode().strip()) == (130, "netem: interrupted")
    assert eventually(lambda: not outer.survivors())


def test_a_full_disk_is_said_in_a_line() -> None:
    argv = [sys.executable, "-m", "netem", "list"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 125
    assert done.stderr == "netem: standard output: No space left on device\n"
