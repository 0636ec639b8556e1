"""`lines`: what a router is told, ready for a shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from netem.catalogue import Catalogue
from netem.cli.lines import lines_command
from netem.cli.run import run
from netem.tc import Hop, plan, shell

NAMES = Catalogue().names()


def lines(*arguments: str) -> Result:
    return CliRunner().invoke(lines_command, arguments, standalone_mode=False)


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_runs_the_lines_of_the_plan_and_nothing_else(name: str, tmp_path: Path) -> None:
    """`tc` and `nft` are stand-ins that write down how they were called."""
    log = tmp_path / "log"
    for tool in ("tc", "nft", "ip"):
        stand_in = tmp_path / tool
        stand_in.write_text(f'#!/bin/sh\n{{ printf "{tool}"; printf "|%s" "$@"; echo; }} >>{log}\n')
        stand_in.chmod(0o755)
    result = lines(name, "eth1", "eth0")
    made = plan(Catalogue().load(name), Hop(to_client="eth1", to_server="eth0"))
    assert result.return_value == (1 if made.cannot else 0)
    assert result.stderr.count("not done by these lines") == len(made.cannot)
    log.write_text("")
    subprocess.run(
        ["/bin/sh", "-e"], input=result.stdout, env={"PATH": str(tmp_path)}, text=True, check=True
    )
    assert log.read_text().splitlines() == ["|".join(command) for command in made.apply]
    undo = lines(name, "eth1", "eth0", "--undo")
    assert undo.stdout.splitlines() == [shell(command) for command in made.undo]


def test_an_end_host_has_one_device() -> None:
    here = lines("loss5", "--client", "wlan0")
    assert "dev wlan0 root handle 7e: netem" in here.stdout
    assert "run the lines on the other end too" in here.stderr
    assert here.return_value == 1


def test_one_port_is_blocked_where_it_is_asked_for() -> None:
    assert "udp dport 443 " in lines("udp-blocked-drop", "a", "b", "--udp-port", "443").stdout


@pytest.mark.parametrize(
    "devices", [[], ["eth0"], ["eth0", "eth0"], ["a", "b", "--client", "c"], ["a", "--server", "c"]]
)
def test_devices_that_make_no_hop_are_refused(devices: list[str]) -> None:
    result = lines("loss5", *devices)
    assert "TO_CLIENT and TO_SERVER, or one by --client or --server" in str(result.exception)


def test_the_tc_driver_s_own_lines_are_printed_without_rights_or_command() -> None:
    def printed(*arguments: str) -> Result:
        return CliRunner().invoke(run, ["--driver", "tc", "--print", *arguments])

    told = printed("udp-blocked-drop", "--udp-port", "4433")
    assert told.output.startswith("# udp-blocked-drop: ")
    assert 'iifname "client" oifname "server" udp dport 4433' in told.output
    assert "\n# to undo\nnft 'delete table inet tenuto_netem'\n" in told.output
    # With a command that is not there: it is not looked for.
    told = printed("mtu-1280", "--", "no-such-command")
    assert "ip -4 route add 198.18.0.1 dev server mtu lock 1280\n" in told.output
    told = CliRunner().invoke(run, ["--driver", "tc", "--print", "leo"], standalone_mode=False)
    assert told.return_value == 1
    assert "# not done by these lines: up.blackout: tc has no schedule" in told.stdout
    assert "netem: not done by these lines: down.blackout" in told.stderr
