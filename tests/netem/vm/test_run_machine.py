"""`run --driver vm`: a command behind a kernel that has netem."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.netem.outer import PYTHON, Outer, outer_network
from tests.support.machine import needs_machine

pytestmark = [needs_machine, pytest.mark.timeout(120)]

SERVE = ("--serve", f"exec {PYTHON} -m http.server 8000", "--ready", "8000")
TALK = (
    "ping -q -c 100 -i 0.005 -W 1 $NETEM_SERVER >/dev/null; "
    "curl -s -o /dev/null -w '%{http_code} ' http://$NETEM_SERVER:8000/; "
    "ip route get $NETEM_SERVER; exit 7"
)


def on_machine(outer: Outer, profile: str, report: Path, *rest: str) -> tuple[int, str, str]:
    arguments = ("run", profile, "--driver", "vm", *SERVE, "--json", str(report), *rest)
    done = outer.netem(*arguments, patience=60.0)
    return done.returncode, done.stdout, done.stderr


def test_a_command_behind_a_machine(tmp_path: Path) -> None:
    with outer_network() as outer:
        before, report = outer.state(), tmp_path / "report.json"
        status, out, err = on_machine(outer, "loss5", report, "--", "sh", "-c", TALK)
        assert status == 7, err
        assert out.startswith("200 ")
        assert "congctl cubic" in out
        assert "driver vm" in err
        assert "delay not measured: the kernel times no packet (set 30 ms)" in err
        assert "netem: the kernel draws without a seed: the same fates never come twice" in err
        told = json.loads(report.read_text())
        up = told["tally"]["path"]["up"]["link"]
        assert up["offered"] == up["delivered"] + up["lost"] >= 100
        assert 0 < up["lost"] < 30
        assert told["measured"]["up"]["delay"] is None
        assert outer.state() == before
        assert outer.survivors() == []


def test_a_direction_without_a_qdisc_is_counted_too(tmp_path: Path) -> None:
    with outer_network() as outer:
        report = tmp_path / "report.json"
        ping = "ping -q -c 5 -i 0.01 $NETEM_SERVER"
        status, _, err = on_machine(outer, "udp-blocked-drop", report, "--", "sh", "-c", ping)
        assert status == 0, err
        told = json.loads(report.read_text())["tally"]["path"]
        assert (told["up"]["link"]["delivered"], told["down"]["link"]["delivered"]) == (5, 5)


def test_what_tc_cannot_do_is_refused(tmp_path: Path) -> None:
    with outer_network() as outer:
        status, _, err = on_machine(outer, "leo", tmp_path / "report.json", "--", "true")
        assert status == 125
        assert "tc cannot do the profile leo whole: up.blackout: tc has no schedule" in err
