"""`.venv`: where its parts are, and whether it serves."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from house.child import environment_for
from house.stamp import LockName, read_stamp, todo, wanted

__all__ = ["OLDEST_PYTHON", "Environment", "Flaw", "find_flaw"]

OLDEST_PYTHON = (3, 11)

# Prints the version, and fails if pip is missing or torn.
_PROBE = (
    "import sys, runpy; print('python', *sys.version_info[:2]); sys.stdout.flush(); "
    "sys.argv = ['pip', '--version']; runpy.run_module('pip', run_name='__main__')"
)


@dataclass(frozen=True, slots=True)
class Environment:
    """Where things are; nothing here says that they exist."""

    root: Path

    @property
    def folder(self) -> Path:
        """The virtual environment itself."""
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        """Its interpreter. Programs are always started by it: `#!` lines break on spaces."""
        windows = sys.platform == "win32"
        return self.folder / ("Scripts/python.exe" if windows else "bin/python")

    @property
    def stamp(self) -> Path:
        """What was installed by us; it comes last, so whoever finds it finds the rest."""
        return self.folder / "tenuto-house.json"

    @property
    def being_made(self) -> Path:
        """There while `.venv` is made: who finds it without its maker starts over."""
        return self.folder / ".being-made"

    @property
    def installing(self) -> Path:
        """There while pip works: who finds it without its maker looks for torn packages."""
        return self.folder / ".installing"

    def version(self) -> str:
        """Its Python's "3.11"; empty if it does not tell."""
        try:
            settings = (self.folder / "pyvenv.cfg").read_text(encoding="utf-8")
        except OSError:
            return ""
        found = re.search(r"^version(?:_info)? = (\d+\.\d+)", settings, re.MULTILINE)
        return found[1] if found else ""

    def variables(self) -> dict[str, str]:
        """The environment variables of whatever runs in it."""
        return environment_for(self.folder, os.environ)

    def is_ready(self, lock: LockName) -> bool:
        """Whether everything that the tree asks for is installed; starts no process."""
        if self.being_made.exists() or self.installing.exists() or not self.python.exists():
            return False
        return not todo(read_stamp(self.stamp), wanted(self.root, self.python), lock)


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a `.venv` cannot be used as it is."""

    reason: str
    lacks_only_pip: bool = False


def find_flaw(environment: Environment) -> Flaw | None:
    """What is wrong with an existing `.venv`, whoever made it."""
    if environment.being_made.exists():
        return Flaw("was left half made")
    if not environment.python.exists():
        return Flaw("has lost its Python")
    try:
        probe = subprocess.run(
            [environment.python, "-c", _PROBE],
            env=environment.variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return Flaw("has a Python that does not start")
    words = probe.stdout.split()
    if words[:1] != ["python"]:
        return Flaw("has a Python that does not start")
    version = (int(words[1]), int(words[2]))
    if version < OLDEST_PYTHON:
        return Flaw(f"has Python {version[0]}.{version[1]}, which is too old")
    return None if probe.returncode == 0 else Flaw("has no working pip", lacks_only_pip=True)
