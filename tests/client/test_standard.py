"""Standard streams that are closed or full: one line, a status, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import wave
from pathlib import Path

import pytest

from tests.client.authority import Authority
from tests.client.peer import sentence, whole
from tests.client.shell import Served

ROOT = Path(__file__).parents[2]
FULL = "tenuto: cannot write standard output: No space left on device. redirect it to"
CLOSED = "tenuto: cannot write standard output: Bad file descriptor. redirect it to"

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux's /dev/full")


class Shell:
    """Runs `tenuto ARGUMENTS REDIRECTIONS` as a shell does, in a folder of its own."""

    def __init__(self, authority: Authority, folder: Path, *, unbuffered: bool) -> None:
        self._folder = folder
        self._environment = {
            **{k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},
            **({"PYTHONUNBUFFERED": "1"} if unbuffered else {}),
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "error",
            "TENUTO_CA": str(authority.ca),
        }

    def __call__(self, arguments: str, server: str = "") -> tuple[int, str, str]:
        done = subprocess.run(
            ["/bin/sh", "-c", f'exec "$0" -m tenuto.cli {arguments}', sys.executable],
            cwd=self._folder,
            env=self._environment | ({"TENUTO_SERVER": server} if server else {}),
            capture_output=True,
            check=False,
            text=True,
            timeout=30,
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(params=[False, True], ids=["buffered", "unbuffered"])
def shell(request: pytest.FixtureRequest, authority: Authority, tmp_path: Path) -> Shell:
    return Shell(authority, tmp_path, unbuffered=request.param)


@pytest.mark.parametrize(
    "arguments", ["--help", "--version", "speak --help", "certs", "certs --json"]
)
def test_nobody_can_take_what_is_printed(shell: Shell, arguments: str) -> None:
    for redirection, expected in ((">/dev/full", FULL), (">&-", CLOSED)):
        status, out, err = shell(f"{arguments} {redirection}")
        assert (status, out, err.count("\n")) == (1, "", 1), err
        assert err.startswith(expected)
        assert shell(f"{arguments} {redirection} 2>&-") == (1, "", "")
        assert shell(f"{arguments} {redirection} 2>/dev/full") == (1, "", "")


@pytest.mark.parametrize("options", ["-o -", "-o a.wav --json", "-o - --json"])
def test_nobody_can_take_what_is_spoken(shell: Shell, served: Served, options: str) -> None:
    with served(whole(sentence(25))) as peer:
        for redirection, expected in ((">/dev/full", FULL), (">&-", CLOSED)):
            status, out, err = shell(f"speak Hello {options} {redirection}", peer.url(path=""))
            *before, last = err.splitlines()
            assert (status, out) == (1, ""), err
            assert last.startswith(expected)
            # With the samples on standard output, the events are on standard error.
            assert all(line.startswith('{"event": ') for line in before)
            if options == "-o - --json":
                assert '"code": "unwritable"' in before[-1]
            else:
                assert before == []


def test_closed_output_is_no_matter_if_nothing_goes_there(
    shell: Shell, served: Served, tmp_path: Path
) -> None:
    path = tmp_path / "x.wav"
    with served(whole(sentence(25))) as peer:
        for redirection in (">&-", ">/dev/full", "2>&-", "2>/dev/full", "<&- >&- 2>&-"):
            done = shell(f"speak Hello -o x.wav {redirection}", peer.url(path=""))
            assert done == (0, "", "")
            with wave.open(str(path)) as file:
                assert file.getnframes() == 25 * 320
            path.unlink()


def test_closed_input_has_no_text(shell: Shell) -> None:
    status, out, err = shell("speak - -o x.wav <&-")
    assert (status, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("tenuto: cannot read standard input: Bad file descriptor. pipe the text")
    assert shell("speak - -o x.wav <&- 2>&-") == (2, "", "")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "2>&- >&-"])
def test_a_mistake_that_cannot_be_told_still_has_its_status(shell: Shell, redirection: str) -> None:
    """Without standard error, nothing else may get the message: standard output is audio."""
    assert shell(f"plya {redirection}") == (2, "", "")
    assert shell(f"speak Hello -o a.mp3 {redirection}") == (2, "", "")
