"""Every command of the lab's page, with less to measure than it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.lab.command import lab
from bench.lab.modes import MODES
from tests.docs.pages import ROOT, blocks, table
from tests.docs.test_commands import commands

PAGE = ROOT / "docs" / "lab.md"
SHELL = [line for block in blocks(PAGE) if block.language == "sh" for line in commands(block)]
SMALL = " --seeds 1 --seconds 1 --mode ref-datagram"
PATIENCE = 60.0


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    """In the order of the page: one reads what another has written."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    assert len(SHELL) > 3
    for line in SHELL:
        done = subprocess.run(
            ["bash", "-c", line if "--from" in line else line + SMALL],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        assert done.stdout
        assert "the report is " in done.stderr
        # The name of the default folder counts seconds.
    assert (tmp_path / "first" / "report.html").exists()


def test_the_page_lists_the_modes() -> None:
    assert [row["mode"].strip("`") for row in table(PAGE, "mode")] == list(MODES)


def test_the_registration_of_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.lab.modes.MODES", dict(MODES))
    (block,) = [block for block in blocks(PAGE) if block.language == "python"]
    exec(compile(block.text, str(block), "exec"), {})  # noqa: S102 - the page's own example
    assert "ref-datagram-two-copies" in capsys.readouterr().out


def test_the_page_lists_the_options() -> None:
    listed = {row["option"].strip("`").split()[0] for row in table(PAGE, "option")}
    assert listed == {param.opts[0] for param in lab.params}
