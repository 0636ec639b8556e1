"""A network for one test, and `python -m netem` in it: nothing of a test is outside of one."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from netem.kernel.interfaces import configure, find_tool
from netem.kernel.namespaces import Namespace

__all__ = ["MARK", "PYTHON", "Outer", "Process", "eventually", "outer_network", "processes_with"]

MARK = "NETEM_TEST_MARK"
"""What tells a run's own processes from all others: their environment."""


PYTHON = shlex.quote(sys.executable)
"""In a line for a shell: our clone may be anywhere."""


@dataclass(slots=True)
class Outer:
    """The network that the user of a run is in."""

    namespace: Namespace
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def start(
        self,
        *arguments: str,
        before: Sequence[str] = (),
        stdin: int | IO[bytes] | None = subprocess.DEVNULL,
        env: dict[str, str] | None = None,
        start_new_session: bool = True,
    ) -> subprocess.Popen[bytes]:
        """`python -m netem` with these arguments; `before` goes first, as setpriv does."""
        with self.namespace.entered():
            return subprocess.Popen(
                [*before, sys.executable, "-m", "netem", *arguments],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, MARK: self.mark, **(env or {})},
                start_new_session=start_new_session,
            )

    def netem(
        self,
        *arguments: str,
        before: Sequence[str] = (),
        env: dict[str, str] | None = None,
        patience: float = 30.0,
    ) -> subprocess.CompletedProcess[str]:
        started = self.start(*arguments, before=before, env=env)
        try:
            out, err = started.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            started.kill()
            raise
        return subprocess.CompletedProcess(
            started.args, started.returncode, out.decode(), err.decode()
        )

    def survivors(self) -> list[str]:
        """Command lines of what of a run is still there."""
        return [process.command for process in processes_with(self.mark)]

    def state(self) -> dict[str, str]:
        """All that a run might have changed here."""
        tc, ip, nft = find_tool("tc"), find_tool("ip"), find_tool("nft")
        asked = {
            "links": [ip, "-o", "link"],
            "addresses": [ip, "-o", "address"],
            "routes": [ip, "route", "show", "table", "all"],
            "routes6": [ip, "-6", "route", "show", "table", "all"],
            "rules": [ip, "rule"],
            "qdiscs": [tc, "qdisc", "show"],
            "nft": [nft, "list", "ruleset"],
        }
        with self.namespace.entered():
            return {
                name: subprocess.run(
                    [str(word) for word in argv], capture_output=True, text=True, check=True
                ).stdout
                for name, argv in asked.items()
            }


@contextlib.contextmanager
def outer_network() -> Iterator[Outer]:
    """With lo, and a device that holds a qdisc of somebody else."""
    with Namespace.new() as namespace:
        outer = Outer(namespace)
        configure(
            namespace,
            [
                "link set dev lo up",
                "link add foreign type veth peer name other",
                "link set dev foreign addrgenmode none",
                "link set dev other addrgenmode none",
                "link set dev foreign up",
                "link set dev other up",
            ],
        )
        with namespace.entered():
            tbf = "qdisc add dev foreign root tbf rate 1mbit burst 3000 limit 30000"
            subprocess.run([str(find_tool("tc")), *tbf.split()], check=True)
        # A new veth finds its carrier a moment later, and that is no doing of a run.
        eventually(lambda: "LOWERLAYERDOWN" not in outer.state()["links"])
        try:
            yield outer
        finally:
            for process in processes_with(outer.mark):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    command: str
    network: int
    """Inode of its network namespace."""
    inner: int
    """Its pid in the innermost pid namespace that it is in."""


def processes_with(mark: str) -> list[Process]:
    found = []
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            if wanted not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            status = (folder / "status").read_text()
            numbers = next(
                line for line in status.splitlines() if line.startswith("NSpid:")
            ).split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            network = os.stat(folder / "ns/net").st_ino
            found.append(Process(int(folder.name), command, network, int(numbers[-1])))
    return found


def eventually(true: Callable[[], bool], patience: float = 5.0) -> bool:
    """Whether it became so."""
    deadline = time.monotonic() + patience
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
