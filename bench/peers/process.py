"""A peer in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["PeerProcess"]


class PeerProcess:
    """`python -m bench.peers.NAME`; it prints its port and runs until `stop`."""

    def __init__(self, name: str, certificate: Path, key: Path) -> None:
        command = [sys.executable, "-m", f"bench.peers.{name}", str(certificate), str(key)]
        # A group of its own: the terminal's Ctrl-C is ours to answer, by `stop`.
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{name} ended with {self.process.wait()}")
        self.port = int(line)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
