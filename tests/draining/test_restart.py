"""SIGHUP: the same process goes on with the same sockets, and nobody is refused meanwhile."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.process import ServerProcess
from quicserver.handover import Estate, become_successor, check_successor
from tenuto.errors import OperatorError
from tests.draining.listeners import ENDLESS, QuicClient, request
from tests.support.fetch import fetch

Start = Callable[..., ServerProcess]


def events(server: ServerProcess, name: str) -> list[dict[str, object]]:
    return [line for line in list(server.log) if line.get("event") == name]


def hang_up(server: ServerProcess, expected: str, count: int) -> None:
    """SIGHUP, until the log holds so many of that event."""
    server.process.send_signal(signal.SIGHUP)
    wait_for(server, expected, count)


def wait_for(server: ServerProcess, expected: str, count: int, patience: float = 20.0) -> None:
    deadline = time.monotonic() + patience
    while len(events(server, expected)) < count:
        assert time.monotonic() < deadline, (expected, list(server.log)[-5:])
        assert server.process.poll() is None, list(server.log)[-5:]
        time.sleep(0.01)


def descriptors(server: ServerProcess) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def children(server: ServerProcess) -> list[str]:
    task = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    return task.read_text().split()


class Listening(threading.Thread):
    """Plays for ever over one door and begins anew whenever its stream is cut."""

    def __init__(self, door: str, server: ServerProcess) -> None:
        super().__init__(daemon=True)
        self.refused = 0
        self.began: list[float] = []
        self.longest = 0.0
        self._door = door
        self._server = server
        self._over = threading.Event()
        self.start()

    def stop(self) -> None:
        self._over.set()
        self.join(15)

    def run(self) -> None:
        heard = time.monotonic()
        while not self._over.is_set():
            answer = fetch(
                self._door,
                self._server.port,
                "/v1/speak?source=counting&frames=1000&lead=0.2",
                ca=self._server.ca,
                headers=("Accept: application/vnd.tenuto.records",),
                timeout=4.0 if not self._over.is_set() else 0.1,
            )
            now = time.monotonic()
            if answer.status == 200:
                self.began.append(now)
                self.longest = max(self.longest, now - heard)
                heard = now
            elif answer.result == 7:  # CURLE_COULDNT_CONNECT
                self.refused += 1
            time.sleep(0.05)


def test_twenty_restarts_in_a_row_with_listeners(server_process: Start) -> None:
    server = server_process("--grace", "0.3")
    pid = server.process.pid
    listening = [Listening(door, server) for door in ("quic", "tcp", "quic")]
    wait_for(server, "SessionOpened", 3)
    before = None
    for number in range(1, 21):
        hang_up(server, "DoorOpened", 4 + 4 * number)
        assert b"ok" in server.get("/healthz")
        assert fetch("quic", server.port, "/healthz", ca=server.ca).status == 200
        wait_for(server, "SessionOpened", 3 + 3 * number)
        if number == 2:
            before = descriptors(server)
    assert before is not None
    for each in listening:
        each.stop()
        assert each.refused == 0
        assert len(each.began) > 20
    deadline = time.monotonic() + 10
    while descriptors(server) > before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert descriptors(server) <= before
    assert server.process.pid == pid
    assert len(children(server)) <= 1, "one for the voice, and no zombie"
    assert server.stop() == 0
    assert len(events(server, "ServerStopped")) == 21
    assert "Traceback" not in str(server.log)
    assert not events(server, "PeerFaulted")


def test_nobody_is_refused_while_the_successor_begins(server_process: Start) -> None:
    server = server_process("--grace", "0.5")
    stuck = request(server.port, server.ca, f"/v1/speak?{ENDLESS}".replace("lead=1", "lead=max"))
    server.process.send_signal(signal.SIGHUP)
    answers = []
    while len(events(server, "DoorOpened")) < 8:
        with socket.create_connection(("127.0.0.1", server.port), timeout=5):
            answers.append(True)
        time.sleep(0.01)
    assert len(answers) > 10
    assert b"ok" in server.get("/healthz")
    stuck.close()


@pytest.mark.parametrize("door", ["quic", "tcp"])
def test_a_listener_hears_on_within_two_seconds(door: str, server_process: Start) -> None:
    server = server_process("--grace", "1")
    path = f"/v1/speak?{ENDLESS}"
    if door == "quic":
        client = QuicClient(server.port, server.ca, [("GET", path)])
        server.process.send_signal(signal.SIGHUP)
        while not client.resets:
            time.sleep(0.005)
        cut = time.monotonic()
        QuicClient(server.port, server.ca, [("GET", path)]).close()
        client.close()
    else:
        connection = request(server.port, server.ca, path)
        server.process.send_signal(signal.SIGHUP)
        while connection.recv(65536):
            pass
        connection.close()
        cut = time.monotonic()
        request(server.port, server.ca, path).close()
    took = time.monotonic() - cut
    print(f"{door}: {took:.3f} s without audio")
    assert took < 2.0


@pytest.mark.parametrize("kind", ["certificate", "token key"])
def test_what_would_not_start_is_not_started(
    kind: str, server_process: Start, ca_file: Path, tmp_path: Path
) -> None:
    folder = ca_file.parent
    for name in ("cert.pem", "key.pem"):
        shutil.copy(folder / name, tmp_path / name)
    (tmp_path / "token.key").write_bytes(b"k" * 32)
    server = server_process(
        "--cert", str(tmp_path / "cert.pem"), "--key", str(tmp_path / "key.pem"),
        "--token-key", str(tmp_path / "token.key"),
    )  # fmt: skip
    broken = tmp_path / ("key.pem" if kind == "certificate" else "token.key")
    good = broken.read_bytes()
    broken.write_bytes(b"short")
    hang_up(server, "RestartRefused", 1)
    assert broken.name in str(events(server, "RestartRefused")[0]["reason"])
    assert b"ok" in server.get("/healthz")
    assert fetch("quic", server.port, "/healthz", ca=server.ca).status == 200
    broken.write_bytes(good)
    hang_up(server, "ServerStopped", 1)
    wait_for(server, "DoorOpened", 8)
    assert server.stop() == 0


def test_a_program_that_no_longer_loads_is_not_started(
    server_process: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    server = server_process()
    (tmp_path / "starlette.py").write_text("what is this?\n")
    hang_up(server, "RestartRefused", 1)
    assert "SyntaxError" in str(events(server, "RestartRefused")[0]["reason"])
    assert b"ok" in server.get("/healthz")


def test_a_second_sighup_while_draining_means_nothing(server_process: Start) -> None:
    server = server_process("--grace", "1")
    stuck = QuicClient(server.port, server.ca, [("GET", f"/v1/speak?{ENDLESS}")], reads=False)
    server.process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    server.process.send_signal(signal.SIGHUP)
    assert server.wait() == 0
    assert len(events(server, "DoorOpened")) == 4
    stuck.close()


def test_sigterm_while_it_restarts_is_the_end(server_process: Start) -> None:
    server = server_process("--grace", "5")
    stuck = request(server.port, server.ca, f"/v1/speak?{ENDLESS}".replace("lead=1", "lead=max"))
    for wait in (0.1, 0.8):
        server.process.send_signal(signal.SIGHUP if wait == 0.1 else signal.SIGTERM)
        time.sleep(wait)
    server.process.send_signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "Traceback" not in str(server.log)
    stuck.close()


def test_standard_input_is_not_handed_over(server_process: Start) -> None:
    server = server_process("--stdin", "live")
    hang_up(server, "RestartRefused", 1)
    assert "standard input" in str(events(server, "RestartRefused")[0]["reason"])
    assert b"ok" in server.get("/healthz")


def test_nohup_keeps_it_from_hearing_sighup(ca_file: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "quicserver",
        "--port",
        "0",
        "--certs-dir",
        str(ca_file.parent),
    ]
    script = "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
    script += f"os.execv(sys.executable, {command!r})"
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if b"door=quic" in line:
                break
        process.send_signal(signal.SIGHUP)
        time.sleep(1.5)
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
    assert process.returncode == 0
    assert b"DoorOpened" not in rest.partition(b"ServerStopped")[2]
    with contextlib.suppress(ProcessLookupError):
        process.kill()


def test_a_storm_of_sighup_is_few_restarts(server_process: Start) -> None:
    server = server_process()
    for _ in range(300):
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.003)
    wait_for(server, "ServerStopped", 1)
    time.sleep(1.0)
    assert b"ok" in server.get("/healthz")
    assert len(events(server, "ServerStopped")) <= 3
    assert server.stop() == 0
    assert "Traceback" not in str(server.log)


def test_a_media_folder_that_is_gone_is_named(server_process: Start, tmp_path: Path) -> None:
    media = tmp_path / "media"
    media.mkdir()
    server = server_process("--media", str(media))
    media.rmdir()
    hang_up(server, "RestartRefused", 1)
    assert "does not exist" in str(events(server, "RestartRefused")[0]["reason"])
    assert b"ok" in server.get("/healthz")


def test_a_working_directory_that_is_gone(
    server_process: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It restarts or says why not: in no case it is lost."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    server = server_process()
    monkeypatch.undo()
    gone.rmdir()
    server.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 20
    while not events(server, "RestartRefused") and len(events(server, "DoorOpened")) < 8:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert b"ok" in server.get("/healthz")
    assert server.stop() == 0
    assert "Traceback" not in str(server.log)


async def test_an_interpreter_that_is_gone_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    reason = await check_successor()
    assert "/nowhere/python" in reason
    with pytest.raises(OperatorError, match="/nowhere/python"):
        become_successor(Estate())
