"""`tenuto doctor` on a network with nothing wrong, and with what a user gets wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.process import ServerProcess
from tenuto.tls import DevCertificates
from tests.support.stranger import answer, stranger

Serve = Callable[..., ServerProcess]


def doctor(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TENUTO_")}
    return subprocess.run(
        [sys.executable, "-m", "tenuto.cli", "doctor", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=100,
        env=environment,
        check=False,
    )


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["status"] == done.returncode
    return document


@pytest.mark.parametrize("host", ["https://localhost", "[::1]"])
def test_a_network_with_nothing_wrong(server_process: Serve, ca_file: Path, host: str) -> None:
    if host == "[::1]" and not Path("/proc/net/if_inet6").exists():
        pytest.skip("no IPv6 on this machine")
    server = server_process()
    document = told(doctor(f"{host}:{server.port}", "--ca", ca_file, "--quick", "--json"))
    assert document["conclusion"] == "QUIC, which works well here."
    assert document["status"] == 0
    weights = {finding["weight"] for finding in document["findings"]}
    assert weights == {"good"}
    assert document["udp"]["state"] == "open"
    assert document["mtu"] == {"bytes": 1500, "told_by": None}
    assert document["nat"]["binding"] == "no-translation"
    assert document["handshakes"]["quic"]["succeeded"] == 3
    assert document["handshakes"]["tls"]["succeeded"] == 3
    assert 12 < document["certificate"]["days_left"] < 14
    assert abs(document["certificate"]["clock_ahead"]) < 30


def test_the_text_names_each_part(server_process: Serve, ca_file: Path) -> None:
    server = server_process()
    done = doctor(f"localhost:{server.port}", "--ca", ca_file, "--quick")
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("certificate", "UDP", "TCP", "QUIC", "voice", "1500", "NAT", "Tenuto will use"):
        assert word in done.stdout


def test_a_server_without_quic_says_so(server_process: Serve, ca_file: Path) -> None:
    server = server_process("--quic", "off")
    document = told(doctor(f"127.0.0.1:{server.port}", "--ca", ca_file, "--quick", "--json"))
    assert (document["transport"], document["status"]) == ("tcp", 1)
    assert document["udp"]["state"] == "rejected"
    assert document["udp"]["icmp_from"] in ("127.0.0.1", None)
    found = {finding["code"] for finding in document["findings"]}
    assert {"quic-not-offered", "udp-rejected", "tcp-ready"} <= found


def test_a_ca_that_is_not_the_servers(server_process: Serve, tmp_path: Path) -> None:
    server = server_process()
    other = DevCertificates(tmp_path / "other").ensure(datetime.now(UTC)).ca.chain_path
    document = told(doctor(f"127.0.0.1:{server.port}", "--ca", other, "--quick", "--json"))
    assert document["status"] == 2
    assert document["certificate"]["state"] == "untrusted"
    # The network is looked at all the same.
    assert document["udp"]["state"] == "open"
    assert document["handshakes"]["quic"]["succeeded"] == 3


@pytest.mark.parametrize(
    ("theirs", "state", "code"),
    [
        (timedelta(0), "expired", "certificate-expired"),
        (timedelta(days=-60), "clock-wrong", "clock-wrong"),
    ],
)
def test_a_certificate_out_of_its_time(
    tmp_path: Path, theirs: timedelta, state: str, code: str
) -> None:
    now = datetime.now(UTC)
    pair = DevCertificates(tmp_path / "old").ensure(now - timedelta(days=60))
    date = f"{now + theirs:%a, %d %b %Y %H:%M:%S GMT}"
    with stranger(pair, answer(404, b"", date=date)) as port:
        done = doctor(f"127.0.0.1:{port}", "--ca", pair.ca.chain_path, "--quick", "--json")
    document = told(done)
    assert document["status"] == 2
    assert document["certificate"]["state"] == state
    assert {code, "not-tenuto"} <= {finding["code"] for finding in document["findings"]}


def test_nobody_is_there() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    document = told(doctor(f"127.0.0.1:{port}", "--insecure", "--json"))
    assert (document["transport"], document["status"]) == ("none", 1)
    assert {f["code"] for f in document["findings"]} == {"udp-rejected", "tcp-refused"}


def test_a_name_without_an_address() -> None:
    done = doctor("nowhere.invalid")
    assert done.returncode == 2
    assert "No address for nowhere.invalid" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["http://localhost"], "begins with http:"),
        (["localhost:0"], "port 0"),
        (["localhost:70000"], "no usable URL"),
        (["localhost", "--ca", "/nowhere.pem"], "/nowhere.pem"),
        (["localhost", "--ca", "x", "--insecure"], "contradict"),
        (["localhost", "--nat", "400"], "--nat"),
        (["localhost", "--nat", "nan"], "--nat"),
        ([], "Missing argument"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments: list[str], words: str) -> None:
    done = doctor(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_ctrl_c_tells_what_is_known(server_process: Serve, ca_file: Path) -> None:
    server = server_process()
    command = [sys.executable, "-m", "tenuto.cli", "doctor", f"127.0.0.1:{server.port}"]
    with subprocess.Popen(
        [*command, "--ca", str(ca_file), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # When the voice is asked for, most is known.
        deadline = time.monotonic() + 20
        while not server.metric("host_sessions_opened_total") and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "Traceback" not in complained
    document = json.loads(said)
    assert document["interrupted"] is True
    assert document["udp"]["state"] == "open"
    assert document["mtu"]["bytes"] == 1500
