"""What a stranger needs to repeat a run: versions, machine, command line."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import bench
from bench.lab.payload import FRAME
from bench.lab.plan import Plan
from bench.lab.record import ProfileNote, Setting
from netem.cli.describing import in_words
from netem.profile import Profile
from tenuto import __version__

__all__ = ["command_line", "setting_of", "versions"]

_PACKAGES: Final = ("aioquic", "hypercorn", "uvloop")
_GIT_WITHIN: Final = 5.0


def setting_of(plan: Plan, given: tuple[str, ...], driver: str, now: datetime) -> Setting:
    """`given`: the profiles as they were named on the command line."""
    return Setting(
        modes=tuple(mode.note() for mode in plan.modes),
        profiles=tuple(map(_note, plan.profiles)),
        seeds=plan.all_seeds,
        seconds=plan.seconds,
        frame_size=FRAME,
        command=command_line(plan, given),
        started=now.isoformat(timespec="seconds"),
        versions=versions(),
        driver=driver,
    )


def command_line(plan: Plan, given: tuple[str, ...]) -> str:
    """All of it in words, for what is left out today may have another default tomorrow."""
    words = ["tenuto", "lab"]
    for profile in given:
        words += ["--profile", profile]
    for mode in plan.modes:
        words += ["--mode", mode.name]
    words += ["--seeds", str(plan.seeds), "--seconds", f"{plan.seconds:g}"]
    return shlex.join(words)


def _note(profile: Profile) -> ProfileNote:
    lines = [*in_words(profile)]
    for key, source in sorted(profile.sources.items()):
        lines.append(f"{key}: {source or 'no source given'}")
    return ProfileNote(name=profile.name, summary=profile.summary, text="\n".join(lines))


def versions() -> dict[str, str]:
    found = {"tenuto": f"{__version__}{_commit()}"}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    found["python"] = f"{platform.python_implementation()} {platform.python_version()}"
    found["kernel"] = f"{platform.system()} {platform.release()} {platform.machine()}"
    found["cores"] = str(os.cpu_count() or "unknown")
    found["cpu"] = _cpu()
    return found


def _commit() -> str:
    """In a clone, the commit, with a mark if files differ from it."""
    root = Path(bench.__file__).parents[1]
    if not (root / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            check=True,
            timeout=_GIT_WITHIN,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return f" ({done.stdout.strip()})"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "unknown"
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "unknown")
