"""A server in a process of its own, as an operator runs it."""

from __future__ import annotations

import json
import os
import queue
import signal
import ssl
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

__all__ = ["ServerProcess"]


class ServerProcess:
    """`tenuto serve --port 0 …`; its port is read from its own log."""

    def __init__(self, certificates: Path, *options: str, stdin: int | None = None) -> None:
        command = [sys.executable, "-m", "quicserver", "--port", "0", "--log", "json"]
        command += ["--certs-dir", str(certificates), "--test-sources", *options]
        self.process = subprocess.Popen(command, stdin=stdin, stderr=subprocess.PIPE, text=True)
        self.log: list[dict[str, Any]] = []
        self._lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        # Read on, so that a full pipe never stops the server.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.ca = certificates / "ca.pem"
        wanted = 1 if "off" in options else 2
        doors: set[str] = set()
        while len(doors) < wanted:
            record = self._next_line()
            if record.get("event") == "DoorOpened":
                doors.add(record["door"])
                self.port = int(record["address"].rsplit(":", 1)[1])

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def rss(self) -> int:
        """Resident bytes."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def get(self, path: str, *, timeout: float = 5.0) -> bytes:
        """A plain HTTP/1.1 request, by nothing of ours."""
        context = ssl.create_default_context(cafile=self.ca)
        with urllib.request.urlopen(  # noqa: S310
            self.url + path, timeout=timeout, context=context
        ) as response:
            body: bytes = response.read()
            return body

    def post(self, path: str) -> dict[str, Any]:
        """The same with an empty body, for what answers with JSON."""
        context = ssl.create_default_context(cafile=self.ca)
        request = urllib.request.Request(self.url + path, method="POST")  # noqa: S310
        with urllib.request.urlopen(request, timeout=5.0, context=context) as response:  # noqa: S310
            answer: dict[str, Any] = json.load(response)
            return answer

    def metric(self, name: str) -> float:
        for line in self.get("/metrics").decode().splitlines():
            if line.startswith(f"tenuto_{name} "):
                return float(line.rsplit(" ", 1)[1])
        raise KeyError(name)

    def stop(self) -> int:
        """SIGTERM unless one was sent, then its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Its exit status; what it still said is in `log`."""
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._reader.join(10)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return self.process.wait()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            record: dict[str, Any] = json.loads(line) if line.startswith("{") else {"text": line}
            self.log.append(record)
            self._lines.put(record)
        self._lines.put(None)

    def _next_line(self) -> dict[str, Any]:
        record = self._lines.get(timeout=20)
        if record is None:
            raise RuntimeError(f"the server ended with {self.process.wait()}: {self.log}")
        return record
