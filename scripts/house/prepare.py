"""Making `.venv`, repairing it, and adding to it what the lock asks for."""

import os
import re
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

from house.child import Ended, follow
from house.console import Console
from house.environment import Environment, find_flaw
from house.repair import remove_half_installed
from house.stamp import EMPTY, LockName, read_stamp, todo, wanted, write_stamp
from house.trouble import Trouble, pip_remedy
from house.turn import Turn, take_turn

__all__ = ["prepare"]

_ERROR_LINES = 25
_VENV_REMEDY = (
    f"Is the disk full? Is Python complete? Debian and Ubuntu ship a part of it apart:\n"
    f"  sudo apt install python{sys.version_info[0]}.{sys.version_info[1]}-venv\n"
    "TENUTO_PYTHON=/path/to/python3 chooses another one."
)
_GO_ON = "Run the same command again: it goes on where it stopped."
_ROUTINE = re.compile(
    r"\s*(Collecting|Downloading|Ignoring|Installing collected|Looking in|Obtaining|Processing"
    r"|Requirement already|Using cached|\[notice\])"
)


def prepare(root: Path, lock: LockName, console: Console) -> Environment:
    """Make `.venv` hold the lock and the project; nothing happens where it already does."""
    environment = Environment(root)
    if environment.is_ready(lock):
        return environment
    with take_turn(
        root / ".venv.lock",
        lambda who: console.line(f"[setup] waiting: {who} is setting up .venv"),
    ) as turn:
        if not environment.is_ready(lock):
            started = time.monotonic()
            _Setup(environment, console, turn).run(lock)
            console.line(f"[setup] ready in {time.monotonic() - started:.1f} s")
    return environment


class _Setup:
    """The work itself, done by whoever has the turn."""

    def __init__(self, environment: Environment, console: Console, turn: Turn) -> None:
        self._environment = environment
        self._console = console
        self._turn = turn

    def run(self, lock: LockName) -> None:
        self._ensure_venv()
        environment = self._environment
        want = wanted(environment.root, environment.python)
        have = read_stamp(environment.stamp)
        if environment.installing.exists():
            self._repair()
            have = EMPTY
        environment.installing.touch()
        left = todo(have, want, lock)
        if left.packages:
            self._install_lock(lock)
            have = have.with_lock(lock, want)
        if left.project:
            self._install_project()
            have = replace(have, root=want.root, project=want.project)
        write_stamp(environment.stamp, have)
        environment.installing.unlink()

    def _ensure_venv(self) -> None:
        environment = self._environment
        if os.path.lexists(environment.folder):
            flaw = find_flaw(environment)
            if flaw is not None and flaw.lacks_only_pip:
                self._add_pip()
                flaw = find_flaw(environment)
            if flaw is None:
                return
            self._console.line(f"[setup] .venv {flaw.reason}: making it anew")
            _remove(environment.folder)
        self._make_venv()

    def _add_pip(self) -> None:
        # Other tools make environments without it, and theirs is kept.
        self._console.line("[setup] .venv has no working pip: adding it")
        python = self._environment.python
        self._follow([python, "-m", "ensurepip", "--default-pip"], "adding pip", total=0)

    def _make_venv(self) -> None:
        environment = self._environment
        _require_venv_modules()
        version = ".".join(map(str, sys.version_info[:3]))
        self._console.line(f"[setup] making .venv with Python {version} ({sys.executable})")
        environment.folder.mkdir()
        environment.being_made.touch()
        ended = self._follow(
            [sys.executable, "-m", "venv", environment.folder], "making .venv", total=0
        )
        if ended.code != 0:
            raise Trouble(
                f"Python could not make .venv:\n{_tail(ended.output)}",
                pip_remedy(ended.output) or _VENV_REMEDY,
            )
        environment.being_made.unlink()

    def _repair(self) -> None:
        for name in remove_half_installed(self._environment.folder):
            self._console.line(f"[setup] {name} was half installed: installing it again")

    def _install_lock(self, lock: LockName) -> None:
        file = self._environment.root / "locks" / f"{lock}.txt"
        total = file.read_text(encoding="utf-8").count("==")
        self._console.line(f"[setup] installing locks/{lock}.txt")
        # The lock is complete, so nothing outside it may come in: no dependencies but its own.
        arguments: list[str | Path] = ["--no-deps", "--require-hashes", "--requirement", file]
        self._pip(arguments, "packages", total)

    def _install_project(self) -> None:
        self._console.line("[setup] installing tenuto itself (editable)")
        arguments: list[str | Path] = [
            "--no-deps",
            "--no-build-isolation",
            "--editable",
            self._environment.root,
        ]
        self._pip(arguments, "tenuto", total=0)

    def _pip(self, arguments: list[str | Path], what: str, total: int) -> None:
        python = self._environment.python
        options = ["--progress-bar", "off", "--no-color"]
        ended = self._follow(
            [python, "-m", "pip", "install", *options, *arguments], what, total=total
        )
        if ended.code < 0:
            raise Trouble(f"pip was killed by signal {-ended.code}.", _GO_ON)
        if ended.code != 0:
            raise Trouble(
                f"pip could not install {what}:\n{_tail(ended.output)}", pip_remedy(ended.output)
            )

    def _follow(self, command: list[str | Path], what: str, *, total: int) -> Ended:
        progress = _Progress(self._console, what, total)
        return follow(
            command,
            cwd=self._environment.root,
            env=self._environment.variables() | {"PYTHONUNBUFFERED": "1"},
            turn=self._turn,
            on_line=progress.heard,
            on_quiet=progress.show,
        )


class _Progress:
    """Turns pip's lines into "packages 12/60: numpy (4 s)"."""

    _NEXT = re.compile(r"(Collecting|Processing|Ignoring|Requirement already satisfied:) (\S+)")

    def __init__(self, console: Console, what: str, total: int) -> None:
        self._console = console
        self._what = what
        self._total = total
        self._count = 0
        self._doing = ""
        self._started = time.monotonic()

    def heard(self, line: str) -> None:
        if match := self._NEXT.match(line):
            self._count += 1
            self._doing = re.split("[=:]", match[2].rpartition("/")[2])[0]
        elif line.startswith("Installing collected packages"):
            self._doing = "unpacking"
        else:
            return
        self.show(time.monotonic() - self._started)

    def show(self, elapsed: float) -> None:
        count = f" {min(self._count, self._total)}/{self._total}" if self._total else ""
        doing = f": {self._doing}" if self._doing else ""
        self._console.status(f"[setup] {self._what}{count}{doing} ({elapsed:.0f} s)")


def _remove(folder: Path) -> None:
    try:
        if folder.is_symlink() or folder.is_file():
            folder.unlink()
        else:
            shutil.rmtree(folder)
    except OSError as error:
        raise Trouble(
            f"the old {folder} cannot be removed: {error}",
            "Stop what still runs from it, or remove it by hand, and run the same command again.",
        ) from error


def _require_venv_modules() -> None:
    # Debian and its kin ship Python without them.
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError as error:
        raise Trouble(
            f"{sys.executable} cannot make virtual environments: it has no {error.name} module.",
            _VENV_REMEDY,
        ) from error


def _tail(output: str) -> str:
    """The end of what was printed, without the roll call of what went well."""
    lines = [line for line in output.splitlines() if not _ROUTINE.match(line)]
    return "\n".join(f"    {line}" for line in lines[-_ERROR_LINES:])
