"""`tenuto doctor` on a network with nothing wrong, and with what a user gets wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.process import ServerProcess
from tenuto.cli.main import cli
from tenuto.tls import DevCertificates, DevPair
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


SIX = "[::1]"
Runs = dict[str, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def runs(dev_pair: DevPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Several of one server side by side, for they mostly wait; by what is examined."""
    ca = dev_pair.ca.chain_path
    folder = tmp_path_factory.mktemp("other")
    other = DevCertificates(folder / "dev").ensure(datetime.now(UTC)).ca.chain_path
    server = ServerProcess(ca.parent)
    commands = {
        "name": (f"https://localhost:{server.port}", "--ca", ca, "--json"),
        SIX: (f"{SIX}:{server.port}", "--ca", ca, "--json"),
        "text": (f"localhost:{server.port}", "--ca", ca),
        "other": (f"127.0.0.1:{server.port}", "--ca", other, "--json"),
    }
    try:
        with ThreadPoolExecutor(len(commands)) as pool:
            done = pool.map(lambda given: doctor(*given, "--quick"), commands.values())
            yield dict(zip(commands, done, strict=True))
    finally:
        server.stop()


@pytest.mark.parametrize("host", ["name", SIX])
def test_a_network_with_nothing_wrong(runs: Runs, host: str) -> None:
    if host == SIX and not Path("/proc/net/if_inet6").exists():
        pytest.skip("no IPv6 on this machine")
    document = told(runs[host])
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


def test_the_text_names_each_part(runs: Runs) -> None:
    done = runs["text"]
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("certificate", "UDP", "TCP", "QUIC", "voice", "1500", "NAT", "Tenuto will use"):
        assert word in done.stdout


def test_a_ca_that_is_not_the_servers(runs: Runs) -> None:
    document = told(runs["other"])
    assert document["status"] == 2
    assert document["certificate"]["state"] == "untrusted"
    assert any("--ca" in ask or "CA's certificate" in ask for ask in document["ask"])
    # The network is looked at all the same.
    assert document["udp"]["state"] == "open"
    assert document["handshakes"]["quic"]["succeeded"] == 3


def test_a_server_without_quic_says_so(server_process: Serve, ca_file: Path) -> None:
    server = server_process("--quic", "off")
    document = told(doctor(f"127.0.0.1:{server.port}", "--ca", ca_file, "--quick", "--json"))
    assert (document["transport"], document["status"]) == ("tcp", 1)
    assert document["udp"]["state"] == "rejected"
    assert document["udp"]["icmp_from"] in ("127.0.0.1", None)
    found = {finding["code"] for finding in document["findings"]}
    assert {"quic-not-offered", "udp-rejected", "tcp-ready"} <= found


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
        (["localhost:abc"], "no usable URL"),
        (["user@localhost"], "user name"),
        (["[::1"], "no usable URL"),
        (["localhost", "--ca", "/nowhere.pem"], "/nowhere.pem"),
        (["localhost", "--ca", "x", "--insecure"], "contradict"),
        (["localhost", "--nat", "400"], "--nat"),
        (["localhost", "--nat", "nan"], "--nat"),
        ([], "Missing argument"),
    ],
)
def test_mistakes_are_told_in_one_line(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TENUTO_CA", raising=False)
    with pytest.raises(SystemExit) as left:
        cli.main(["doctor", *arguments])
    said = capsys.readouterr()
    assert left.value.code == 2
    assert words in said.err
    assert len(said.err.splitlines()) == 1
    assert said.out == ""


def test_ctrl_c_tells_what_is_known(server_process: Serve, ca_file: Path) -> None:
    server = server_process()
    command = [sys.executable, "-m", "tenuto.cli", "doctor", f"127.0.0.1:{server.port}"]
    with subprocess.Popen(
        [*command, "--ca", str(ca_file), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # When the voice over TCP is asked for, that over QUIC is known.
        deadline = time.monotonic() + 20
        while server.metric("host_sessions_opened_total") < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "Traceback" not in complained
    document = json.loads(said)
    assert document["interrupted"] is True
    assert document["udp"]["state"] == "open"
    assert document["voice"]["quic"]["needed"] == 258_000
    assert document["voice"]["tcp"] is None
