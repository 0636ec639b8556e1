"""What docs/loss-testing.md tells to type on a router, typed on one: on a kernel with netem."""

from __future__ import annotations

import base64
import shlex
import subprocess
from dataclasses import replace

import pytest

from netem.catalogue import Catalogue
from netem.profile import (
    Conditions,
    Distribution,
    GilbertElliott,
    Jitter,
    Profile,
    Rate,
)
from netem.tc import Ends, Hop, plan
from netem.vm.bed import VmBed
from tests.docs.pages import ROOT, blocks
from tests.docs.test_commands import commands
from tests.docs.test_loss_testing import PAGE, needs_netem
from tests.netem.outer import PYTHON
from tests.support.machine import needs_machine

SCRIPTS = sorted((ROOT / "netem" / "scripts").glob("*.sh"))
HOP, ENDS = Hop(to_client="eth0", to_server="eth1"), Ends(client=("198.18.0.2",), server=())
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
            shlex.split(line.replace("python", PYTHON).removesuffix("| sh -e")),
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
def test_the_commands_of_the_page_and_all_scripts_do_it_on_a_real_netem() -> None:
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

        for script in SCRIPTS:
            if script.name in ("clear.sh", "common.sh", "block-udp443.sh"):
                continue
            run, show = f"sh netem/scripts/{script.name} eth0 eth1", "tc qdisc show"
            # Again, over its own. Then without a device, so that all of them are cleared.
            lines = [run, show, run, show, "sh netem/scripts/clear.sh", show]
            said = bed.machine.run("\necho ---\n".join(lines)).split("---\n")
            first, once, second, twice, _, cleared = said
            assert "done on eth0 and eth1" in first
            assert once.count("qdisc netem 7e: ") == 2, script.name
            assert "done on eth0 and eth1" in second
            assert twice == once
            assert cleared == before, script.name


@needs_machine
@pytest.mark.timeout(120)
def test_a_real_netem_takes_every_built_in_profile_and_every_form_of_line() -> None:
    every = Conditions(
        delay=60.0,
        jitter=Jitter(spread=0.005, distribution=Distribution.PARETO),
        loss=GilbertElliott(to_bad=0.01, to_good=0.3, loss_bad=0.8, loss_good=0.001),
        bottleneck=Rate(bits_per_second=1e11, queue=1_000_000),
        duplicate=0.01,
        corrupt=0.01,
        reorder=0.01,
    )
    profiles = [Catalogue().load(name) for name in Catalogue().names()]
    profiles += [Profile(name="every", up=every, down=replace(every, duplicate=0.0))]
    taken = 0
    with VmBed(Profile(name="clear")) as bed:
        for profile in profiles:
            if not plan(profile, HOP, ends=ENDS).cannot:
                bed.apply(profile)
                taken += 1
    assert taken > len(profiles) / 2
