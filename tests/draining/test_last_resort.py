"""Whatever holds the event loop: the end, or the restart, comes within the grace and a second."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from bench.process import ServerProcess
from tests.draining.listeners import request

Start = Callable[..., ServerProcess]

GRACE = 0.5
ROOT = Path(__file__).parents[2]
HOLDERS = {
    "sleeps": "time.sleep(600)",
    "works": "while True: pass",
    "ignores its cancellation": "await stubborn()",
}
HELD = """
import asyncio, time
from tenuto.sources.counting import CountingSource

async def stubborn():
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass

async def held(self):
    {body}
    yield b""

CountingSource.stream = held
"""


@pytest.fixture
def held(
    server_process: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., ServerProcess]]:
    """A server whose source, once somebody listens, does not let go."""
    with ExitStack() as closing:

        def start(how: str) -> ServerProcess:
            (tmp_path / "sitecustomize.py").write_text(HELD.format(body=HOLDERS[how]))
            monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
            server = server_process("--grace", str(GRACE))
            listener = request(server.port, server.ca, "/v1/speak?source=counting", read=0)
            closing.callback(listener.close)
            time.sleep(0.5)
            return server

        yield start


def events(server: ServerProcess, name: str) -> list[dict[str, object]]:
    return [line for line in list(server.log) if line.get("event") == name]


@pytest.mark.parametrize("how", HOLDERS)
def test_the_end_comes_in_time(how: str, held: Callable[..., ServerProcess]) -> None:
    server = held(how)
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(10) == 0
    took = time.monotonic() - began
    server.wait()
    assert took < GRACE + 1.05, took
    assert len(events(server, "EndForced")) == 1
    if how != "ignores its cancellation":  # Then the loop is free, and asyncio's own end hangs.
        assert str(events(server, "EndForced")[0]["place"]).startswith("sitecustomize.py:")


def test_a_second_signal_ends_a_held_server_within_a_second(
    held: Callable[..., ServerProcess],
) -> None:
    server = held("sleeps")
    server.process.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    server.process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    assert server.process.wait(10) == 0
    assert time.monotonic() - began < 1.05


def test_a_restart_comes_in_time(held: Callable[..., ServerProcess]) -> None:
    server = held("ignores its cancellation")
    server.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 10
    while len(events(server, "DoorOpened")) < 8 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(events(server, "DoorOpened")) == 8
    assert events(server, "EndForced")
    assert b"ok" in server.get("/healthz")
    assert server.stop() == 0


def test_told_to_end_before_it_has_its_port_it_ends(server_process: Start, ca_file: Path) -> None:
    first = server_process()
    process = subprocess.Popen(
        [sys.executable, "-m", "quicserver", "--port", str(first.port), "--wait-for-port", "60",
         "--certs-dir", str(ca_file.parent)],
        stderr=subprocess.PIPE,
    )  # fmt: skip
    time.sleep(2.0)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=5)
    assert (process.returncode, said) == (0, b"")


def test_sigterm_at_any_moment_of_the_start(ca_file: Path) -> None:
    """Before the handlers are there the system ends it; after that it ends with 0."""
    draw = Random(1)
    for moment in [draw.uniform(0.0, 1.5) for _ in range(15)]:
        process = subprocess.Popen(
            [sys.executable, "-m", "quicserver", "--port", "0", "--certs-dir",
             str(ca_file.parent)],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        time.sleep(moment)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=5)
        assert process.returncode in (0, -signal.SIGTERM), (moment, said)
        assert "DoorOpened" not in said or process.returncode == 0, (moment, said)
        assert "Traceback" not in said, (moment, said)


def test_a_log_that_nobody_reads_keeps_nobody(ca_file: Path) -> None:
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    process = subprocess.Popen(
        [sys.executable, "-m", "quicserver", "--port", "0", "--grace", "0.3", "--test-sources",
         "--certs-dir", str(ca_file.parent)],
        stderr=write,
    )  # fmt: skip
    said = b""
    while said.count(b"DoorOpened") < 4:
        said += os.read(read, 4096)
    port = int(said.split(b"127.0.0.1:")[1].split()[0])
    for _ in range(60):
        request(port, ca_file, "/v1/speak?source=counting&frames=1&lead=max").close()
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    assert time.monotonic() - began < 1.35
    os.close(read)
    os.close(write)
