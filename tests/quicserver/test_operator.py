"""What an operator can get wrong: one line that names it, exit status 2, no traceback."""

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
from tests.support.fetch import fetch

Serve = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def serve(ca_file: Path) -> Serve:
    """Run a server that is expected to refuse."""

    def run(
        *options: str, python: tuple[str, ...] = (), **more: object
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *python, "-m", "quicserver", "--certs-dir", str(ca_file.parent)]
        return subprocess.run(
            [*command, *options], capture_output=True, text=True, timeout=30, check=False
        )

    return run


def refused(result: subprocess.CompletedProcess[str], *words: str) -> None:
    assert result.returncode == 2, result
    lines = [line for line in result.stderr.splitlines() if line.startswith("tenuto: ")]
    assert len(lines) == 1, result.stderr
    for word in words:
        assert word in lines[0], lines[0]
    assert "Traceback" not in result.stderr


def take_port(host: str, kind: socket.SocketKind) -> socket.socket:
    """Hold a port for one protocol that is free for the other on both loopback addresses.

    Below the range that the system gives to others at any moment (RFC 6056).
    """
    for port in range(20000 + os.getpid() % 5000, 30000):
        held = []
        try:
            for address in ("127.0.0.1", "::1"):
                for each in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    family = socket.AF_INET6 if ":" in address else socket.AF_INET
                    held.append(socket.socket(family, each))
                    held[-1].bind((address, port))
        except OSError:
            for one in held:
                one.close()
            continue
        taken = held.pop(("127.0.0.1", "::1").index(host) * 2 + (kind == socket.SOCK_DGRAM))
        for one in held:
            one.close()
        return taken
    raise AssertionError("no port is free")


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_port_in_use_is_named(serve: Serve, kind: socket.SocketKind, host: str) -> None:
    with take_port(host, kind) as taken:
        if kind == socket.SOCK_STREAM:
            taken.listen()
        port = taken.getsockname()[1]
        name = "TCP" if kind == socket.SOCK_STREAM else "UDP"
        refused(serve("--port", str(port)), name, host, str(port), "in use", "--port")


def test_a_second_server_on_the_same_port_is_refused(
    serve: Serve, server_process: Callable[..., ServerProcess]
) -> None:
    first = server_process()
    refused(serve("--port", str(first.port)), "in use")
    assert b"ok" in first.get("/healthz")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--port", "70000"), ("70000",)),
        (("--host", "0.0.0.0"), ("0.0.0.0", "loopback")),  # noqa: S104
        (("--host", "192.0.2.7"), ("192.0.2.7", "loopback")),
        (("--host", "localhost"), ("'localhost'", "127.0.0.1")),
        (("--host", "127.9.9.9.9"), ("127.9.9.9.9",)),
        (("--cert", "x.pem"), ("--key",)),
        (("--key", "x.pem"), ("--cert",)),
        (("--cert", "no.pem", "--key", "no.key"), ("no.pem",)),
        (("--media", "/nowhere/at/all"), ("/nowhere/at/all", "does not exist")),
        (("--media", "/etc/passwd"), ("/etc/passwd", "no folder")),
        (("--media", ""), ("--media", "empty path")),
        (("--certs-dir", ""), ("--certs-dir", "empty path")),
        (("--quic", "150"), ("150",)),
        (("--quic", "maybe"), ("maybe", "off")),
        (("--quic", "nan"), ("nan",)),
        (("--grace", "soon"), ("soon",)),
        (("--nonsense",), ("--nonsense",)),
    ],
    ids=" ".join,
)
def test_bad_options_are_named(
    serve: Serve, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    refused(serve("--port", "0", *options), *words)


def test_a_certificate_and_key_that_do_not_match_are_refused(
    serve: Serve, ca_file: Path, tmp_path: Path
) -> None:
    pair = ["--cert", str(ca_file.parent / "cert.pem"), "--key", str(tmp_path / "key.pem")]
    shutil.copy(ca_file.parent / "next-key.pem", tmp_path / "key.pem")
    refused(serve("--port", "0", *pair), "key.pem", "does not belong")
    (tmp_path / "key.pem").write_text("nothing of the kind")
    refused(serve("--port", "0", *pair), "key.pem")
    (tmp_path / "key.pem").unlink()
    (tmp_path / "key.pem").mkdir()
    refused(serve("--port", "0", *pair), "key.pem")


def test_the_environment_sets_what_the_command_line_does_not(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENUTO_SERVE_QUIC", "nonsense")
    refused(serve("--port", "0"), "nonsense")


def test_without_the_speech_extra_other_sources_are_served(
    server_process: Callable[..., ServerProcess],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A module of the extra's name that cannot be imported stands for its absence."""
    (tmp_path / "espeakng_loader.py").write_text("raise ImportError('not installed')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    server = server_process()
    tone = server.get("/v1/speak?tone=440&seconds=0.1")
    assert len(tone) == 44 + 3200
    answer = fetch("quic", server.port, "/v1/speak?text=Hi", ca=server.ca)
    assert (answer.status, answer.json["code"]) == (503, "no-voice")
    assert "tenuto[espeak]" in answer.json["remedy"]


def test_a_machine_without_ipv6_is_served_on_ipv4(ca_file: Path) -> None:
    own = [] if os.geteuid() == 0 else ["-r"]
    possible = shutil.which("unshare") and shutil.which("ip")
    if not possible or subprocess.run(["unshare", *own, "-n", "true"], check=False).returncode:
        pytest.skip("this machine makes no network namespaces (unshare and ip, or the right)")
    script = (
        "ip link set lo up && "
        "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 && "
        f"exec '{sys.executable}' -m quicserver --port 4433 --certs-dir '{ca_file.parent}'"
    )
    argv = ["unshare", *own, "-n", "sh", "-c", script]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as server:
        impatience = threading.Timer(30, server.kill)
        impatience.start()
        said = ""
        for line in server.stderr or ():
            said += line
            if said.count("DoorOpened") == 2:
                server.terminate()
        impatience.cancel()
    assert "AddressSkipped address=::1" in said
    assert "DoorOpened door=quic address=127.0.0.1:4433" in said
    assert "DoorOpened door=tcp address=127.0.0.1:4433" in said
    assert "Traceback" not in said


def test_sigterm_twice_ends_at_once(
    server_process: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    server = server_process("--grace", "30")
    url = f"{server.url}/v1/speak?source=counting&frames=100000&lead=1"
    # Stopped, it reads nothing: the grace would have to pass.
    play = [sys.executable, "-m", "tenuto.cli", "play", url, "--transport", "tcp"]
    play += ["--ca", str(server.ca), "--lead", "max", "--output", str(tmp_path / "a.wav")]
    with subprocess.Popen(play, stderr=subprocess.DEVNULL) as listener:
        while not server.metric("listeners"):
            time.sleep(0.05)
        listener.send_signal(signal.SIGSTOP)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert server.process.poll() is None
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert time.monotonic() - began < 5
        listener.kill()
    assert "Traceback" not in str(server.log)


def test_a_log_that_nobody_reads_keeps_neither_audio_nor_the_end_waiting(
    ca_file: Path,
) -> None:
    """The pipe is full before the first session: every later line waits or is dropped."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    with take_port("127.0.0.1", socket.SOCK_STREAM) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "quicserver", "--port", str(port), "--host", "127.0.0.1"]
    command += ["--certs-dir", str(ca_file.parent), "--test-sources"]
    server = subprocess.Popen(command, stderr=writer)
    os.close(writer)
    try:
        for _ in range(100):
            answer = fetch("tcp", port, "/v1/speak?source=counting&frames=3", ca=ca_file)
            if answer.status == 200:
                break
            time.sleep(0.1)
        assert len(answer.body) == 44 + 3 * 640
        server.send_signal(signal.SIGTERM)
        assert server.wait(8) == 0
    finally:
        server.kill()
        server.wait()
        os.close(reader)
