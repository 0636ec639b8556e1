"""The demo as a program: its figures, and that nothing outlives it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-P", "-m", "tenuto.cli.demo", "--port", "0"]


def children(pid: int) -> list[int]:
    """Processes below one, by /proc."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found += [int(entry.parent.name), *children(int(entry.parent.name))]
    return found


def test_once_prints_both_transports_and_ends() -> None:
    done = subprocess.run(
        [*COMMAND, "--once", "--json"], capture_output=True, text=True, timeout=60, check=True
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["transport"] for line in lines] == ["quic", "tcp"]
    for line in lines:
        assert 0 < line["handshake"] < line["first_audio"]
        assert line["frames"] > 50
        assert line["gaps"] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ended_by_a_signal_it_leaves_no_process_behind(number: signal.Signals) -> None:
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "Ctrl-C" in line:
                break
        below = children(demo.pid)
        assert len(below) >= 2  # The server and its speech engine.
        demo.send_signal(number)
        demo.stdout.read()
        assert demo.wait(15) in (128 + number, 130)
    deadline = time.monotonic() + 5
    while any(os.path.exists(f"/proc/{pid}") for pid in below):
        assert time.monotonic() < deadline, "something outlives the demo"
        time.sleep(0.05)


def test_a_port_in_use_is_one_line() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
        command = [*COMMAND[:-1], port, "--once"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert port in done.stderr
    assert done.stderr.count("--port") == 1
