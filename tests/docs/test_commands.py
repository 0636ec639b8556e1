"""Every command that a page tells to type is typed: against a real server, with the real curl."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.process import ServerProcess
from tenuto.tls import DevPair
from tests.docs.pages import PAGES, ROOT, Block, blocks

BLOCKS = [
    block
    for page in PAGES
    # test_lab_page.py and test_loss_testing.py run these, in networks of their own.
    if page.name not in ("lab.md", "loss-testing.md")
    for block in blocks(page)
    if block.language in ("sh", "console", "python")
]

FOREGROUND = re.compile(r"(tenuto serve|python -m quicserver|scripts/demo(?!.*--once))\b")
READY = re.compile(r"DoorOpened.*\bquic\b|Ctrl-C stops the server")
MARK = "@@ command"


@dataclass(frozen=True, slots=True)
class Desk:
    """Where a reader sits: a folder of his own, a server, and what a command finds on the path."""

    folder: Path
    server: ServerProcess
    environment: dict[str, str]

    def rewrite(self, command: str) -> str:
        """The command for this desk: its server's port and CA, stand-ins for what sets up."""
        command = command.replace("4433", str(self.server.port))
        command = command.replace("certs/dev/ca.pem", shlex.quote(str(self.server.ca)))
        script = re.match(r"scripts/(\w+)", command)
        return _stand_in(script[1], command[script.end() :]) if script else _install(command)

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def _stand_in(script: str, arguments: str) -> str:
    """What a script ends in. It would begin by setting up the environment that runs this test."""
    python, root = shlex.quote(sys.executable), shlex.quote(str(ROOT))
    arguments = arguments.split("#")[0].strip()
    if script == "demo":
        return f"{python} -P -m tenuto.cli.demo --port 0 {arguments}"
    known = f"sh -n {root}/scripts/{script} && {{ {python} {root}/scripts/house 2>&1 || true; }}"
    if script == "test" and arguments:
        pytest_only = "-m pytest -q --collect-only -p no:cacheprovider tests/pure/test_ring.py"
        return f"(cd {root} && {python} {pytest_only} {arguments})"
    return f"{known} | grep -w {script}"


def _install(command: str) -> str:
    """An installation is planned, from the clone and without a network, but not made."""
    options = "install --dry-run --no-deps --no-index --no-build-isolation"
    planned = command.replace("pip install", f"pip {options}")
    return planned.replace("'.[", f"{shlex.quote(str(ROOT))}'[")


def commands(block: Block) -> list[str]:
    """One entry for each command, continued lines joined, comments left out."""
    text = block.text
    if block.language == "console":
        text = "".join(f"{line[2:]}\n" for line in text.splitlines() if line.startswith("$ "))
    joined = re.sub(r"\\\n\s*", "", text)
    return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]


@pytest.fixture(scope="module")
def server(dev_pair: DevPair) -> Iterator[ServerProcess]:
    process = ServerProcess(dev_pair.ca.chain_path.parent)
    yield process
    process.stop()


@pytest.fixture
def desk(tmp_path: Path, server: ServerProcess, dev_pair: DevPair) -> Desk:
    shutil.copy(dev_pair.current.chain_path, tmp_path / "fullchain.pem")
    shutil.copy(dev_pair.current.key_path, tmp_path / "privkey.pem")
    (tmp_path / "media").mkdir()
    programs = tmp_path / "programs"
    programs.mkdir()
    # Nobody has ears here.
    (programs / "ffplay").write_text("#!/bin/sh\nexec wc -c\n", encoding="ascii")
    (programs / "ffplay").chmod(0o755)
    path = [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TENUTO_")},
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": str(ROOT),
        "TENUTO_SERVER": server.url,
        "TENUTO_CA": str(server.ca),
        "TENUTO_SERVE_PORT": "0",
    }
    return Desk(tmp_path, server, environment)


def test_there_are_commands_to_test() -> None:
    assert len(BLOCKS) > 8
    assert {block.language for block in BLOCKS} >= {"sh", "python"}


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_the_block_does_what_it_says(block: Block, desk: Desk) -> None:
    if "curl" in block.text and shutil.which("curl") is None:
        pytest.skip("curl is not installed on this machine")
    if block.language == "python":
        run_python(block, desk)
        return
    background = [line for line in commands(block) if not FOREGROUND.match(line)]
    run_together(background, desk)
    for line in commands(block):
        if FOREGROUND.match(line):
            run_briefly(line, desk)


def run_python(block: Block, desk: Desk) -> None:
    example = desk.folder / "example.py"
    code = block.text.replace("4433", str(desk.server.port))
    example.write_text(code.replace("certs/dev/ca.pem", str(desk.server.ca)), encoding="utf-8")
    done = desk.run(f"{shlex.quote(sys.executable)} example.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout


def run_together(lines: list[str], desk: Desk) -> None:
    """One shell for all of a block, since a line may use what one before it has set."""
    rewritten = [desk.rewrite(line) for line in lines]
    script = "".join(f"{line}\nprintf '{MARK}\\n'\n" for line in rewritten)
    done = desk.run(f"exec 2>&1\nset -eo pipefail\n{script}")
    assert done.returncode == 0, f"{rewritten}\n{done.stdout}"
    said = done.stdout.split(f"{MARK}\n")
    assert len(said) == len(lines) + 1
    for line, output in zip(rewritten, said, strict=False):
        assert "Traceback" not in output, f"{line}\n{output}"
        assert output.strip() or left_something(line, desk.folder), f"{line} says nothing"


def left_something(line: str, folder: Path) -> bool:
    """A file with something in it, or a variable."""
    named = re.search(r"(?:-o|--output) (\S+)", line)
    if named is not None:
        return (folder / named[1]).stat().st_size > 100
    return re.match(r"[A-Z]+=", line) is not None


def run_briefly(line: str, desk: Desk) -> None:
    """A command that stays, until it is ready; then Ctrl-C."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {desk.rewrite(line)}"],
        cwd=desk.folder,
        env=desk.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    alarm = threading.Timer(30, process.kill)
    alarm.start()
    heard = []
    try:
        for said in process.stdout:
            heard.append(said)
            if READY.search(said):
                time.sleep(0.3)  # Nobody is quicker with Ctrl-C.
                os.killpg(process.pid, signal.SIGINT)
                heard += process.stdout
        status = process.wait()
    finally:
        alarm.cancel()
        process.stdout.close()
    told = "".join(heard)
    assert READY.search(told), told
    assert "Traceback" not in told
    # A demo is a command like any other, which Ctrl-C interrupts; a server ends well.
    demo = "cli.demo" in desk.rewrite(line)
    assert (status, "ServerStopped" in told) == ((130, False) if demo else (0, True)), told
