"""`list` and `show`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from netem.catalogue import Catalogue
from netem.cli.listing import list_profiles, show_profile
from tests.netem.outer import PYTHON

NAMES = Catalogue().names()


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(show_profile, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_every_profile_is_listed_with_its_summary() -> None:
    lines = CliRunner().invoke(list_profiles).output.splitlines()
    assert [line.split()[0] for line in lines] == NAMES
    assert all(len(line.split()) > 2 for line in lines)


def test_every_profile_can_be_shown_both_ways() -> None:
    for name in NAMES:
        assert shown(name).startswith(f"{name}: ")
        told = json.loads(shown("--json", name))
        assert told["name"] == name
        assert set(told["up"]) == set(told["down"])


def test_values_are_said_in_units_with_their_sources() -> None:
    text = shown("4g")
    assert "both   delay 30 ms\n" in text
    assert "down   rate 9 Mbit/s, a queue of 100 packets\n" in text
    assert "loss: Loadero" in text
    assert "both   loss 5 %, each packet alone" in shown("loss5")
    assert "in bursts: into one 1.75439 %, out of it 33.3333 %" in shown("loss5-burst")
    assert "path   block every UDP packet: reject" in shown("udp-blocked-reject")
    assert "path   NAT, forgetting bindings every 5 s" in shown("nat-rebind-5s")


def test_the_users_own_profiles(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('summary = "my own"\n[both]\nduplicate = "1%"\n')
    arguments = ["--profiles", str(tmp_path)]
    listed = CliRunner().invoke(list_profiles, arguments).output
    assert "mine" in listed
    assert "loss5" in listed
    assert "both   duplicate 1 %" in shown(*arguments, "mine")


def test_one_that_is_none_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "a-broken.toml").write_text("broken = [")
    (tmp_path / "mine.toml").write_text('summary = "my own"\n')
    (tmp_path / "nowhere.toml").symlink_to("/no/such/file")
    result = CliRunner().invoke(list_profiles, ["--profiles", str(tmp_path)], standalone_mode=False)
    assert result.return_value == 2
    listed = [line.split()[0] for line in result.stdout.splitlines()]
    assert listed == sorted([*NAMES, "mine"])
    said = result.stderr.splitlines()
    assert [line.split(": ")[1] for line in said] == [
        str(tmp_path / "a-broken.toml"),
        str(tmp_path / "nowhere.toml"),
    ]


def test_a_nonsense_profile_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text('summary = "bad"\n[both]\ndely = "3ms"\n')
    bad = str(tmp_path / "bad.toml")
    for arguments in (["show", bad], ["run", bad, "true"]):
        done = subprocess.run(
            [sys.executable, "-m", "netem", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert done.stderr.startswith(f"netem: {bad}: both.dely: ")
        assert done.stderr.count("\n") == 1


def test_a_reader_who_has_had_enough() -> None:
    line = f"{PYTHON} -m netem list | head -1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.stderr == ""
