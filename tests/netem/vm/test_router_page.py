"""What docs/loss-testing.md tells to type on a router, typed on one: on a kernel with netem."""

from __future__ import annotations

import base64
import shlex
import subprocess
import sys

import pytest

from netem.profile import Profile
from netem.vm.bed import VmBed
from tests.docs.pages import ROOT, blocks
from tests.docs.test_commands import commands
from tests.docs.test_loss_testing import PAGE, needs_netem
from tests.support.machine import needs_machine

SCRIPTS = sorted((ROOT / "netem" / "scripts").glob("*.sh"))
LINES = [
    line
    for block in blocks(PAGE)
    if block.language == "sh"
    for line in commands(block)
    if needs_netem(line)
]


def typed(bed: VmBed, line: str) -> str:
    """What the router says. It has no Python: what is piped into its shell is made here."""
    line = line.replace("sudo ", "")
    if "| sh -e" in line:
        made = subprocess.run(
            shlex.split(line.replace("python", sys.executable).removesuffix("| sh -e")),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        return bed.machine.run(made.stdout)
    return bed.machine.run(line)


def lost_of(bed: VmBed, pings: int) -> int:
    argv = ["ping", "-q", "-i", "0.002", "-W", "1", "-c", str(pings), bed.server.ipv4]
    said, _ = bed.client.popen(argv, stdout=subprocess.PIPE).communicate(timeout=20)
    return pings - int(said.decode().partition(" received")[0].rpartition(" ")[2])


def qdiscs(bed: VmBed) -> str:
    return bed.machine.run("tc qdisc show")


@needs_machine
@pytest.mark.timeout(120)
def test_the_commands_of_the_page_do_it_on_a_real_netem() -> None:
    assert [line for line in LINES if "| sudo sh" in line]
    with VmBed(Profile(name="clear")) as bed:
        bed.machine.run("mkdir -p netem/scripts")
        for script in SCRIPTS:
            text = base64.b64encode(script.read_bytes()).decode()
            bed.machine.run(f"echo {text} | base64 -d > netem/scripts/{script.name}")
        before = qdiscs(bed)
        assert lost_of(bed, 100) == 0
        told = iter(LINES)

        line = next(told)
        assert "loss5.sh" in line
        assert "done on eth0 and eth1" in typed(bed, line)
        assert qdiscs(bed).count("delay 30ms loss 5%") == 2
        # Lost on the way there or back: 9.75 % of 400, five standard deviations around it.
        assert 10 <= lost_of(bed, 400) <= 69

        line = next(told)
        assert "block-udp443.sh drop" in line
        typed(bed, line)
        assert "udp dport 443" in bed.machine.run("nft list ruleset")
        assert "netem" in qdiscs(bed)

        line = next(told)
        assert "clear.sh" in line
        typed(bed, line)
        assert qdiscs(bed) == before
        assert bed.machine.run("nft list ruleset") == ""

        line = next(told)
        assert "lines 4g" in line
        typed(bed, line)
        assert "rate 9Mbit" in qdiscs(bed), qdiscs(bed)
        line = next(told)
        assert "--undo" in line
        typed(bed, line)
        assert qdiscs(bed) == before
        assert next(told, None) is None


@needs_machine
@pytest.mark.timeout(120)
def test_every_script_is_taken_by_a_real_netem_and_taken_back() -> None:
    with VmBed(Profile(name="clear")) as bed:
        bed.machine.run("mkdir -p netem/scripts")
        for script in SCRIPTS:
            text = base64.b64encode(script.read_bytes()).decode()
            bed.machine.run(f"echo {text} | base64 -d > netem/scripts/{script.name}")
        before = qdiscs(bed)
        for script in SCRIPTS:
            if script.name in ("clear.sh", "common.sh", "block-udp443.sh"):
                continue
            bed.machine.run(f"sh netem/scripts/{script.name} eth0 eth1")
            assert qdiscs(bed).count("qdisc netem 7e: ") == 2, script.name
            # Again, over its own.
            bed.machine.run(f"sh netem/scripts/{script.name} eth0 eth1")
            bed.machine.run("sh netem/scripts/clear.sh eth0 eth1")
            assert qdiscs(bed) == before, script.name
