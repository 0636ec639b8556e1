"""The commands: which lock each needs, and what it runs then."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from house.checks import check
from house.console import Console
from house.environment import OLDEST_PYTHON, Environment
from house.locking import lock
from house.prepare import prepare
from house.trouble import Trouble

__all__ = ["main", "pytest_arguments"]

ROOT = Path(__file__).resolve().parents[2]
_INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Run one command; the answer is the exit code."""
    console = Console()
    command = _COMMANDS.get(arguments[0] if arguments else "")
    if command is None:
        console.line(f"usage: python scripts/house {'|'.join(_COMMANDS)} [arguments]")
        return 2
    try:
        _require_python()
        _note_other_python(console)
        return command(list(arguments[1:]), console)
    except Trouble as trouble:
        console.line(f"error: {trouble.message}")
        if trouble.remedy:
            console.line("\n" + trouble.remedy)
        return 1
    except PermissionError as error:
        console.line(f"error: {error.filename} cannot be written: {error.strerror}")
        console.line(f"\nMake {ROOT} writable, or copy the project to a folder of your own.")
        return 1
    except KeyboardInterrupt:
        console.line("interrupted; the same command goes on where this one stopped")
        return _INTERRUPTED


def pytest_arguments(given: Sequence[str], came_from: Path, root: Path) -> list[str]:
    """pytest's arguments: three workers unless the caller decides, paths as the caller meant them.

    Most tests wait for half of their time, so three fill two processors. Neighbours that are alike
    stay with one worker, so that no two of the heavy ones meet.
    """
    decided = any(
        argument.startswith(("-n", "--numprocesses", "--dist", "--pdb", "--trace"))
        or argument in {"no:xdist", "-pno:xdist"}
        for argument in given
    )
    workers = [] if decided else ["-n", "3", "--dist", "worksteal"]
    return workers + [_absolute(argument, came_from, root) for argument in given]


def _absolute(argument: str, came_from: Path, root: Path) -> str:
    """pytest runs in the root, so a path relative to the caller's folder has to be told so."""
    path, separator, test = argument.partition("::")
    there = came_from / path
    inside = came_from != root and came_from.is_relative_to(root)
    if not inside or not path or path.startswith("-") or not there.exists():
        return argument
    return f"{there}{separator}{test}"


def _demo(arguments: list[str], console: Console) -> int:
    environment = prepare(ROOT, "run", console)
    # -P: the caller's folder is not searched for modules, whatever lies in it.
    return _become(environment, ["-P", "-m", "tenuto.cli.demo", *arguments])


def _test(arguments: list[str], console: Console) -> int:
    environment = prepare(ROOT, "dev", console)
    came_from = Path.cwd()
    os.chdir(ROOT)
    return _become(environment, ["-m", "pytest", *pytest_arguments(arguments, came_from, ROOT)])


def _check(arguments: list[str], console: Console) -> int:
    return check(arguments, prepare(ROOT, "dev", console), console)


def _fix(arguments: list[str], console: Console) -> int:
    environment = prepare(ROOT, "dev", console)
    codes = [
        subprocess.run(
            [environment.python, "-m", "ruff", *step, *arguments],
            cwd=ROOT,
            env=environment.variables(),
            check=False,
        ).returncode
        for step in (["check", "--fix"], ["format"])
    ]
    return max(codes)


def _lock(arguments: list[str], console: Console) -> int:
    return lock(ROOT, arguments, console)


_COMMANDS: dict[str, Callable[[list[str], Console], int]] = {
    "demo": _demo,
    "test": _test,
    "check": _check,
    "fix": _fix,
    "lock": _lock,
}


def _become(environment: Environment, arguments: list[str]) -> int:
    """Turn into that program, so that signals reach it and nobody stands between."""
    command = [str(environment.python), *arguments]
    if sys.platform == "win32":
        # Windows has no exec: its imitation gives the prompt back while the program runs on.
        return subprocess.run(command, env=environment.variables(), check=False).returncode
    os.execve(command[0], command, environment.variables())


def _note_other_python(console: Console) -> None:
    """A working `.venv` is kept, also when another Python is asked for: better say so."""
    there = Environment(ROOT).version()
    mine = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if "TENUTO_PYTHON" in os.environ and there and there != mine:
        console.line(f"[setup] .venv stays on Python {there}; remove it to get one with {mine}")


def _require_python() -> None:
    if sys.version_info < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        raise Trouble(
            f"{sys.executable} is Python {sys.version_info[0]}.{sys.version_info[1]}; "
            f"{wanted} or newer is needed."
        )
