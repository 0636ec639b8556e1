"""What is installed in `.venv`, so that a second run has nothing to do."""

import hashlib
import json
import os
import re
import tomllib
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Literal

__all__ = ["EMPTY", "LockName", "Stamp", "Todo", "read_stamp", "todo", "wanted", "write_stamp"]

LockName = Literal["run", "dev"]

_VERSION = re.compile(r"^__version__ = .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Stamp:
    """Digests of what was installed; an empty one says "never"."""

    python: str = ""
    root: str = ""
    run: str = ""
    dev: str = ""
    project: str = ""

    def with_lock(self, name: LockName, wanted: "Stamp") -> "Stamp":
        """This stamp after that lock was installed; the dev lock contains the run lock."""
        dev = wanted.dev if name == "dev" else self.dev
        return replace(self, python=wanted.python, run=wanted.run, dev=dev)


EMPTY = Stamp()


@dataclass(frozen=True, slots=True)
class Todo:
    """What has to be installed before the environment serves."""

    packages: bool
    project: bool

    def __bool__(self) -> bool:
        return self.packages or self.project


def todo(have: Stamp, want: Stamp, lock: LockName) -> Todo:
    """Compare what is there with what is wanted."""
    same_python = have.python == want.python
    have_lock, want_lock = (have.run, want.run) if lock == "run" else (have.dev, want.dev)
    same_project = have.project == want.project and have.root == want.root
    return Todo(
        packages=not same_python or have_lock != want_lock,
        project=not same_python or not same_project,
    )


def wanted(root: Path, python: Path) -> Stamp:
    """The stamp of an environment in which everything that the tree asks for is installed."""
    return Stamp(
        python=_python_identity(python),
        root=str(root),
        run=_digest((root / "locks" / "run.txt").read_bytes()),
        dev=_digest((root / "locks" / "dev.txt").read_bytes()),
        project=_project_digest(root),
    )


def read_stamp(path: Path) -> Stamp:
    """The stamp at that path, or the empty one if there is none that can be read."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return EMPTY
    names = {field.name for field in fields(Stamp)}
    if not isinstance(raw, dict) or set(raw) != names:
        return EMPTY
    return Stamp(**{name: str(raw[name]) for name in names})


def write_stamp(path: Path, stamp: Stamp) -> None:
    """Replace the stamp in one step, so that a reader never sees half of it."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(asdict(stamp), indent=2) + "\n", encoding="utf-8")
    os.replace(new, path)


def _python_identity(python: Path) -> str:
    """Changes when another interpreter stands behind `.venv`: moved, replaced or upgraded."""
    real = Path(os.path.realpath(python))
    try:
        status = real.stat()
    except OSError:
        return ""
    return f"{real} {status.st_size} {status.st_mtime_ns}"


def _project_digest(root: Path) -> str:
    """Only what the installed metadata depends on: settings of tools change nothing."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    hatch = project.get("tool", {}).get("hatch", {})
    parts = [project.get("build-system"), project.get("project"), hatch]
    version = _VERSION.search((root / "tenuto" / "__init__.py").read_text(encoding="utf-8"))
    parts.append(version.group() if version else None)
    return _digest(json.dumps(parts, sort_keys=True).encode())


def _digest(data: bytes) -> str:
    # A checkout with other line endings is the same lock.
    return hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()
