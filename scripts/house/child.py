"""Child processes of the set-up: their environment, and what they print while they work."""

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from house.turn import Turn

__all__ = ["Ended", "environment_for", "follow"]

# They would make Python or pip look at, or write to, another place than `.venv`.
_MISLEADING = frozenset(
    {
        "PYTHONHOME",
        "PYTHONPATH",
        "__PYVENV_LAUNCHER__",
        "PIP_CONSTRAINT",
        "PIP_DRY_RUN",
        "PIP_EDITABLE",
        "PIP_IGNORE_INSTALLED",
        "PIP_PREFIX",
        "PIP_PYTHON",
        "PIP_QUIET",
        "PIP_REQUIREMENT",
        "PIP_REQUIRE_HASHES",
        "PIP_ROOT",
        "PIP_TARGET",
    }
)

_LISTEN_SECONDS = 0.25
_FAREWELL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child process ended."""

    code: int
    output: str


def environment_for(venv: Path, base: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that runs in `.venv`, as if it had been activated."""
    env = {name: value for name, value in base.items() if name.upper() not in _MISLEADING}
    programs = venv / ("Scripts" if sys.platform == "win32" else "bin")
    path = env.get("PATH", os.defpath)
    env["PATH"] = f"{programs}{os.pathsep}{path}"
    env["VIRTUAL_ENV"] = str(venv)
    # Paths are read as they were written, in a folder of any name and under any locale.
    env["PYTHONUTF8"] = "1"
    env["PIP_USER"] = "0"
    env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    env["PIP_NO_INPUT"] = "1"
    return env


def follow(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str],
    turn: Turn,
    on_line: Callable[[str], None],
    on_quiet: Callable[[float], None],
) -> Ended:
    """Run to the end; `on_quiet` hears several times a second for how long it has run.

    The child inherits the turn: were this process killed, nobody else would start to change
    `.venv` before pip is really gone.
    """
    child = subprocess.Popen(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        pass_fds=() if sys.platform == "win32" else (turn,),
    )
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_read_lines, args=(child, lines), daemon=True).start()
    kept: list[str] = []
    started = time.monotonic()
    try:
        while True:
            try:
                line = lines.get(timeout=_LISTEN_SECONDS)
            except queue.Empty:
                on_quiet(time.monotonic() - started)
                continue
            if line is None:
                break
            kept.append(line)
            on_line(line)
        code = child.wait()
    finally:
        _see_off(child)
    return Ended(code, "\n".join(kept))


def _read_lines(child: subprocess.Popen[str], lines: "queue.SimpleQueue[str | None]") -> None:
    assert child.stdout is not None
    with child.stdout as output:
        for line in output:
            lines.put(line.rstrip())
    lines.put(None)


def _see_off(child: subprocess.Popen[str]) -> None:
    """After Ctrl-C, which the child got too: let it clean up behind itself."""
    try:
        child.wait(timeout=_FAREWELL_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
