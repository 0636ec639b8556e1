"""The command in a process of its own: pipes, signals, real arguments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import wave
from pathlib import Path

import pytest

from tenuto.wire import Format
from tests.client.authority import Authority
from tests.client.peer import AUDIO, Asked, Out, frames, problem, records, sentence, whole
from tests.client.shell import PCM, Served, endless


async def refusing_to_go_on(asked: Asked, out: Out) -> None:
    if "from=" in asked.path:
        await problem(503, code="at-capacity", detail="no room", retry_after=30)(asked, out)
        return
    await out.head(tenuto_session="s-1")
    await out.send(records(Format(AUDIO, 0), *frames(25)))
    await out.cut()


ROOT = Path(__file__).parents[2]


def start(authority: Authority, *arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tenuto.cli", *arguments],
        cwd=ROOT,
        env={**os.environ, "TENUTO_CA": str(authority.ca)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_raw_samples_on_standard_output(authority: Authority, served: Served) -> None:
    with served(whole(sentence(25))) as peer:
        process = start(authority, "play", peer.url(), "-o", "-", "--json")
        out, err = process.communicate(timeout=10)
    assert process.returncode == 0
    assert out == PCM
    assert json.loads(err.splitlines()[-1])["output"] == "-"


def test_a_reader_that_leaves_is_no_error(authority: Authority, served: Served) -> None:
    with served(endless) as peer:
        process = start(authority, "play", peer.url(), "-o", "-")
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1000)
        process.stdout.close()
        assert process.wait(10) == 1
        assert process.stderr.read() == b""
        process.stderr.close()


def test_ctrl_c_ends_quietly_and_keeps_the_file(
    authority: Authority, served: Served, tmp_path: Path
) -> None:
    path = tmp_path / "a.wav"
    with served(endless) as peer:
        process = start(authority, "play", peer.url(), "-o", path)
        while not path.exists() or path.stat().st_size < 10_000:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err
    with wave.open(str(path)) as file:
        assert file.getnframes() * 2 + 44 == path.stat().st_size


def test_ctrl_c_while_the_reader_does_not_read(authority: Authority, served: Served) -> None:
    with served(endless) as peer:
        process = start(authority, "play", peer.url(), "-o", "-")
        assert process.stdout is not None
        process.stdout.read(1000)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 130
        process.communicate()


def test_ctrl_c_ends_at_once_while_it_retries(
    authority: Authority, served: Served, tmp_path: Path
) -> None:
    path = tmp_path / "a.raw"
    with served(refusing_to_go_on) as peer:
        process = start(authority, "play", peer.url(), "-o", path, "--json")
        assert process.stdout is not None
        while b'"event": "retrying"' not in process.stdout.readline():
            pass
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
    assert process.returncode == 130
    assert time.monotonic() - began < 2
    assert path.read_bytes() == PCM


def test_lone_surrogates_in_real_arguments(authority: Authority) -> None:
    process = start(authority, "speak", os.fsdecode(b"caf\xe9"), "-o", "a.raw")
    _, err = process.communicate(timeout=10)
    assert process.returncode == 2
    assert err.decode().count("\n") == 1
    assert "lone surrogate" in err.decode()


def test_ctrl_c_does_not_wait_for_a_name_that_is_being_resolved(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = """
import socket, time
def hang(*arguments, **more):
    print("asked", flush=True)
    time.sleep(60)
socket.getaddrinfo = hang
"""
    (tmp_path / "sitecustomize.py").write_text(hangs)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    process = start(authority, "play", "https://voice.test/v1/speak", "-o", tmp_path / "a.wav")
    assert process.stdout is not None
    assert process.stdout.readline() == b"asked\n"
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=8)
    assert process.returncode == 130
    assert time.monotonic() - began < 3
