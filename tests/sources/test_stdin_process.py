"""`tenuto serve --stdin`: a real process, real pipes, and clients that we did not write."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench.process import ServerProcess
from tenuto.sources import read_index
from tenuto.sources.counting import numbered_run
from tests.sources.test_wav_stream import ONE, wav
from tests.support.fetch import fetch

SPEAK = "/v1/speak?source=stdin"

Start = Callable[..., ServerProcess]


@pytest.fixture
def start(ca_file: Path) -> Iterator[Start]:
    running: list[ServerProcess] = []

    def run(*options: str, stdin: int = subprocess.PIPE) -> ServerProcess:
        running.append(ServerProcess(ca_file.parent, *options, stdin=stdin))
        return running[-1]

    yield run
    for process in running:
        if process.process.stdin is not None and not process.process.stdin.closed:
            process.process.stdin.close()
        process.stop()


def write(server: ServerProcess, data: bytes, *, end: bool = False) -> None:
    pipe = server.process.stdin
    assert pipe is not None
    while data:
        data = data[os.write(pipe.fileno(), data) :]
    if end:
        pipe.close()


def indices(body: bytes) -> list[int]:
    samples = body[44:]
    return [read_index(samples[at : at + 640]) for at in range(0, len(samples), 640)]


def test_a_pipe_is_heard_to_its_end_and_then_refused(start: Start) -> None:
    server = start("--stdin", "pausable")
    write(server, wav(numbered_run(0, 200 * 640, 640)), end=True)
    assert indices(server.get(SPEAK)) == list(range(200))
    answer = fetch("quic", server.port, SPEAK, ca=server.ca)
    assert (answer.status, answer.json["code"]) == (410, "source-ended")
    assert "standard input has ended" in answer.json["detail"]
    assert len(server.get("/v1/speak?tone=440&seconds=0.1")) == 44 + 3200
    assert server.metric("stdin_read_bytes_total") == 44 + 200 * 640


def test_all_listeners_of_a_live_pipe_share_a_session(start: Start) -> None:
    server = start("--stdin", "live", "--stdin-format", "16000")
    ended = threading.Event()

    def talk() -> None:
        for number in range(150):
            write(server, numbered_run(number * 640, 640, 640))
            time.sleep(0.02)
        ended.set()
        write(server, b"", end=True)

    talking = threading.Thread(target=talk)
    talking.start()
    time.sleep(0.3)
    with ThreadPoolExecutor() as pool:
        heard = [
            pool.submit(fetch, door, server.port, SPEAK, ca=server.ca)
            for door in ("quic", "tcp", "tcp")
        ]
        answers = [each.result() for each in heard]
    talking.join()
    assert ended.is_set()
    assert len({answer.headers["tenuto-session"] for answer in answers}) == 1
    for answer in answers:
        assert answer.result == 0
        numbers = indices(answer.body)
        assert numbers == list(range(numbers[0], 150))
        assert 5 <= numbers[0] < 75
    opened = [record for record in server.log if record.get("event") == "SessionOpened"]
    assert [record["source"] for record in opened] == ["stdin"]


def test_a_mislabelled_pipe_is_in_the_log_and_counted(start: Start) -> None:
    server = start("--stdin", "live", "--stdin-format", "16000")
    with ThreadPoolExecutor() as pool:
        listening = pool.submit(fetch, "tcp", server.port, SPEAK, ca=server.ca)
        for _ in range(80):
            write(server, bytes(2 * 44100 // 20))
            time.sleep(0.05)
        write(server, b"", end=True)
        assert listening.result().status == 200
    assert server.metric("stdin_off_pace_total") == 1
    told = [record for record in server.log if record.get("event") == "SourceOffPace"]
    assert [(r["level"], r["source"], r["announced"]) for r in told] == [
        ("warning", "stdin", 16000)
    ]
    assert 24_000 < told[0]["measured"] < 60_000


@pytest.mark.parametrize("mode", ["live", "pausable"])
def test_nothing_at_all_is_an_empty_stream_once(start: Start, mode: str) -> None:
    server = start("--stdin", mode, stdin=subprocess.DEVNULL)
    first = fetch("tcp", server.port, SPEAK, ca=server.ca)
    assert (first.status, first.result, len(first.body)) == (200, 0, 44)
    assert fetch("quic", server.port, SPEAK, ca=server.ca).status == 410
    assert len(server.get("/v1/speak?tone=440&seconds=0.1")) == 44 + 3200


def test_garbage_harms_nothing_but_its_own_source(start: Start) -> None:
    server = start("--stdin", "pausable")
    write(server, b"\x89PNG\r\n\x1a\n" + bytes(100), end=True)
    for door in ("quic", "tcp"):
        answer = fetch(door, server.port, SPEAK, ca=server.ca)
        assert (answer.status, answer.json["code"]) == (415, "unsupported-audio")
        assert "a PNG image" in answer.json["detail"]
    assert len(server.get("/v1/speak?tone=440&seconds=0.1")) == 44 + 3200


def test_a_writer_that_dies_in_mid_sample_ends_the_stream(start: Start) -> None:
    server = start("--stdin", "pausable")
    write(server, wav(ONE, size=1_000_000)[: 44 + 501], end=True)
    assert server.get(SPEAK)[44:] == ONE[:500]


def test_what_shares_the_pipe_may_take_its_header(start: Start) -> None:
    reader, writer = os.pipe()
    server = start("--stdin", "live", stdin=reader)
    # Another program reads what it can; what is left begins in the middle.
    taken = threading.Thread(target=lambda: os.read(reader, 100))
    taken.start()
    time.sleep(0.05)
    os.write(writer, wav(bytes(200)))
    os.write(writer, bytes(range(128, 256)) * 4)
    os.close(writer)
    taken.join()
    os.close(reader)
    answer = fetch("tcp", server.port, SPEAK, ca=server.ca)
    assert answer.status in (200, 410, 415)
    assert len(server.get("/v1/speak?tone=440&seconds=0.1")) == 44 + 3200


def test_the_process_ends_though_nobody_writes(start: Start) -> None:
    server = start("--stdin", "live")
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    assert server.wait() == 0
    assert time.monotonic() - began < 4
    assert not [record for record in server.log if "text" in record]


@pytest.mark.parametrize("door", ["quic", "tcp"])
def test_who_waits_for_a_header_is_told_when_the_server_stops(start: Start, door: str) -> None:
    server = start("--stdin", "pausable", "--grace", "8")
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(fetch, door, server.port, SPEAK, ca=server.ca)
        time.sleep(0.5)
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        answer = waiting.result()
    assert (answer.status, answer.json["code"], answer.result) == (503, "draining", 0)
    assert server.wait() == 0
    assert time.monotonic() - began < 4


def test_head_does_not_wait_for_a_header(start: Start) -> None:
    server = start("--stdin", "pausable")
    began = time.monotonic()
    answer = fetch("tcp", server.port, SPEAK, ca=server.ca, method="HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert time.monotonic() - began < 4
    write(server, wav(ONE), end=True)
    assert server.get(SPEAK)[44:] == ONE
    assert fetch("tcp", server.port, SPEAK, ca=server.ca, method="HEAD").status == 410


def test_a_closed_session_leaves_what_it_had_not_taken_to_the_next(start: Start) -> None:
    server = start("--stdin", "pausable", "--stdin-format", "16000")
    everything = numbered_run(0, 1000 * 640, 640)
    writing = threading.Thread(target=lambda: write(server, everything, end=True))
    writing.start()
    made = fetch("tcp", server.port, "/v1/sessions", ca=server.ca, method="POST",
                 body=b'{"source": "stdin"}')  # fmt: skip
    time.sleep(0.5)
    where = f"/v1/sessions/{made.json['session']}/control"
    fetch("tcp", server.port, where, ca=server.ca, method="POST", body=b'{"command": "close"}')
    heard = server.get(SPEAK)[44:]
    writing.join()
    server.stop()
    closed = [record for record in server.log if record.get("event") == "SessionClosed"]
    assert everything.endswith(heard)
    # What the session held, and the run of 100 ms that it had in hand.
    assert len(everything) - len(heard) <= (closed[0]["frames"] + 1 + 5) * 640


def test_without_the_option_the_remedy_is_named(start: Start) -> None:
    server = start(stdin=subprocess.DEVNULL)
    answer = fetch("tcp", server.port, SPEAK, ca=server.ca)
    assert (answer.status, answer.json["code"]) == (400, "bad-request")
    assert "--stdin live" in answer.json["remedy"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--stdin", "live"), ("is a terminal", "ffmpeg")),
        (("--stdin", "loud"), ("loud", "pausable")),
        (("--stdin", "live", "--stdin-format", "mp3"), ("'mp3'", "16000")),
        (("--stdin", "live", "--stdin-format", "50"), ("50 samples/s", "8000 to 192000")),
        (("--stdin-format", "16000"), ("--stdin live",)),
    ],
    ids=" ".join,
)
def test_what_cannot_be_served_is_refused_at_the_start(
    ca_file: Path, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    command = [sys.executable, "-m", "quicserver", "--port", "0"]
    command += ["--certs-dir", str(ca_file.parent)]
    master, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [*command, *options],
            stdin=terminal,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    finally:
        os.close(master)
        os.close(terminal)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    for word in words:
        assert word in line
