"""Every command of the loss lab's page, in networks of the test's own.

There is a server on port 4433 of loopback, as a reader has one, and a router's two devices. What
only a kernel with netem does is run in the virtual machine, by tests/netem/vm/test_router_page.py.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.tls import DevPair
from tests.docs.pages import ROOT, Block, blocks
from tests.docs.test_commands import commands

PAGE = ROOT / "docs" / "loss-testing.md"
BLOCKS = [block for block in blocks(PAGE) if block.language == "sh"]

PATIENCE = 90.0

SETUP = """
set -e
ip link set lo up
ip link add eth0 type veth peer name far0
ip link add eth1 type veth peer name far1
ip link set eth0 up; ip link set eth1 up
tenuto serve --certs-dir "$CERTS" >server.log 2>&1 &
for i in $(seq 100); do
    if grep -q 'door=quic address=127.0.0.1' server.log; then break; fi
    sleep 0.1
done
exec 2>&1
set -o pipefail
"""
MARK = "@@ command"


def needs_netem(line: str) -> bool:
    """Whether it asks the kernel itself for delay or loss."""
    return "netem/scripts/" in line or line.startswith("ethtool") or "| sudo sh" in line


def here(line: str) -> str:
    """The line, run from an empty folder: the scripts are only read and printed."""
    line = line.replace("netem/scripts/", f"{shlex.quote(str(ROOT))}/netem/scripts/")
    if needs_netem(line):
        line = line.replace(" | sudo sh -e", "")
        line = re.sub(r"(scripts/\S+\.sh)", r"\1 --print", line)
        # Its own word first: the variant comes before the options.
        line = re.sub(r"--print (drop)", r"\1 --print", line)
    return line


def test_the_page_leads_from_no_root_to_a_router() -> None:
    text = PAGE.read_text(encoding="utf-8")
    told = [
        text.index(f"## {title}") for title in ("Without privileges", "With root", "On a router")
    ]
    assert told == sorted(told)
    assert len(BLOCKS) > 10


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_the_block_does_what_it_says(block: Block, tmp_path: Path, dev_pair: DevPair) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    # We are root, or would not get this far.
    (programs / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
    (programs / "sudo").chmod(0o755)
    certificates = dev_pair.ca.chain_path.parent
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TENUTO_")},
        "PATH": os.pathsep.join(
            [str(programs), str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin"]
        ),
        "PYTHONPATH": str(ROOT),
        "CERTS": str(certificates),
        "TENUTO_SERVE_CERTS_DIR": str(certificates),
        "TENUTO_CA": str(certificates / "ca.pem"),
    }
    lines = [here(line) for line in commands(block)]
    script = SETUP + "".join(f"{line}\necho '{MARK}'\n" for line in lines)
    unshare = shutil.which("unshare")
    assert unshare is not None, "util-linux is not installed"
    # A pid namespace, so that nothing outlives the block, whatever becomes of it.
    done = subprocess.run(
        [unshare, "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", script],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"{lines}\n{done.stdout}\n{done.stderr}"
    said = done.stdout.split(f"{MARK}\n")
    assert len(said) == len(lines) + 1
    for line, output in zip(lines, said, strict=False):
        assert "Traceback" not in output, f"{line}\n{output}"
        assert output.strip(), f"{line} says nothing"
    for name in re.findall(r"(?:--output|--json|-o) (\S+)", block.text):
        assert (tmp_path / name).stat().st_size > 100, name
