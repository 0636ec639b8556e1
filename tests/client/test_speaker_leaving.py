"""Ctrl-C while the library is still at work in a thread: the process ends, and in one piece."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.process import ServerProcess

# Ended at exit while it opens a device, this library crashes as PortAudio does.
_LIBRARY = """
import atexit, os, pathlib, time

class PortAudioError(Exception):
    pass

def _exit_handler():
    os.abort()

atexit.register(_exit_handler)
{loading}

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def hang(*arguments, **options):
        pathlib.Path({told!r}).touch()
        time.sleep(60)

    return hang
"""
_SLOW = "pathlib.Path({told!r}).touch(); time.sleep(60)"


@pytest.mark.parametrize("when", ["loading", "opening"])
def test_an_interrupt_while_the_library_works_is_no_crash(
    when: str, server_process: Callable[..., ServerProcess], ca_file: Path, tmp_path: Path
) -> None:
    server = server_process()
    told = tmp_path / "told"
    loading = _SLOW.format(told=str(told)) if when == "loading" else ""
    library = _LIBRARY.format(loading=loading, told=str(told))
    (tmp_path / "sounddevice.py").write_text(library, encoding="utf-8")
    url = f"https://localhost:{server.port}/v1/speak?tone=440&seconds=30"
    process = subprocess.Popen(
        [sys.executable, "-m", "tenuto.cli", "play", url, "--ca", str(ca_file)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        while not told.exists():
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=10)
    finally:
        process.kill()
    assert process.returncode == 130
    assert b"Traceback" not in error
    assert b"Fatal" not in error
