"""Who one is and what the machine has: a way that works, or the reason and the ways out."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.lab.labrun import LabRun
from tests.netem.outer import Outer
from tests.netem.test_privileges import NO_NAMESPACES, PLAIN_USER, hidden

SMALL = ["--seconds", "1", "--seeds", "1", "--mode", "quic-stream", "--profile", "rtt80"]


def test_who_is_nobody_has_the_lab_too(outer: Outer) -> None:
    # What pytest has made is root's alone.
    with tempfile.TemporaryDirectory(prefix="lab-test-") as folder:
        Path(folder).chmod(0o777)
        run = LabRun(outer, Path(folder) / "run", SMALL, before=PLAIN_USER)
        results = run.completed()
        assert results.setting.driver == "veth"
        assert all(None not in flow.delays for flow in results.flows)


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (NO_NAMESPACES, "No user namespace can be made here"),
        (hidden("ip"), "There is no `ip` here: install iproute2"),
    ],
    ids=["namespaces", "ip"],
)
def test_what_is_refused_is_named_with_the_way_out(
    outer: Outer, tmp_path: Path, before: list[str], words: str
) -> None:
    run = LabRun(outer, tmp_path / "run", SMALL, before=before)
    assert run.end() == 2
    *_, last = run.told.splitlines()
    assert words in last
    assert "`python -m netem probe` says" in last
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_ends_it_with_what_came_before(outer: Outer, tmp_path: Path) -> None:
    mount = f'mount -t tmpfs -o size=12k none "{tmp_path}"; exec "$@"'
    before = ["unshare", "-m", "sh", "-c", mount, "sh"]
    run = LabRun(outer, tmp_path / "run", [*SMALL, "--profile", "rtt80-loss5"], before=before)
    assert run.end() == 2
    assert run.told.count("cannot write") == 1
    assert "No space left on device. make room there" in run.told
    assert "rtt80" in run.out
