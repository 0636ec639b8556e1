"""What happens at the time-outs and bounds of the edges: each ends in one line, never in a wait."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import pytest

from netem.drivers.addresses import Claim
from netem.drivers.tclines import run_line
from netem.errors import ImpairmentError
from netem.kernel import interfaces, probe, trials
from netem.kernel.interfaces import configure, ip
from netem.measure.plan import Plan
from netem.measure.running import MeasurementFailedError, measure_between
from netem.vm import packages
from netem.vm.packages import NoMachineError
from tests.netem.outer import PYTHON, Outer, eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux")


def test_every_subnet_is_taken(outer: Outer) -> None:
    configure(outer.namespace, ["address add 198.18.0.1/15 dev foreign"])
    with pytest.raises(ImpairmentError, match="Every subnet of 198.18.0.0/15 is taken here; give"):
        Claim(outer.namespace)


def test_a_tool_that_hangs(outer: Outer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ip", "tc"):
        (tmp_path / name).write_text("#!/bin/sh\nexec sleep 60\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(interfaces, "PATIENCE", 0.2)
    monkeypatch.setattr("netem.drivers.tclines.PATIENCE", 0.2)
    with pytest.raises(ImpairmentError, match="`ip link` failed: .* timed out after 0.2 seconds"):
        ip(outer.namespace, ["link"])
    with pytest.raises(ImpairmentError, match="`tc qdisc` failed: .* timed out after 0.2 seconds"):
        run_line(outer.namespace, ("tc", "qdisc"))


def test_a_trial_that_gives_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "PATIENCE", 0.2)
    assert trials._tried(lambda: time.sleep(60)) == "no answer within 0.2 s"
    monkeypatch.setattr(probe, "PATIENCE", 0.01)
    assert set(probe.probe().refusals.values()) == {"it could not be tried: TimeoutExpired"}


def test_a_measuring_process_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    hangs = ["sh", "-c", "exec >&-; exec sleep 60"]
    monkeypatch.setattr("netem.measure.running.python_argv", lambda *arguments: hangs)
    monkeypatch.setattr("netem.measure.running._SPARE_TIME", 0.2)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as two,
        pytest.raises(MeasurementFailedError, match="did not end: measure again"),
    ):
        measure_between(one, two, (("127.0.0.1", 1), None), Plan(packets=1))


def test_a_download_that_takes_too_long() -> None:
    with pytest.raises(NoMachineError, match="sleep 60: took longer than 0 s"):
        packages._run(["sleep", "60"], timeout=0.1)


def test_a_server_that_will_not_end_is_ended(outer: Outer) -> None:
    server = f"trap '' TERM; {PYTHON} -m http.server 8000 & while :; do sleep 0.1; done"
    before = time.monotonic()
    done = outer.netem("run", "clear", "--serve", server, "--ready", "8000", "--", "true")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - before > 3.0
    assert eventually(lambda: not outer.survivors())
