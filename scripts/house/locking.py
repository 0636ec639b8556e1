"""`scripts/lock`: make the locks from pyproject.toml again."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from house.console import Console
from house.trouble import Trouble, pip_remedy

__all__ = ["lock"]

# Pinned, so that two people who lock the same day get the same files.
_UV = "uv==0.13.9"

_COMMON = (
    "pip", "compile", "pyproject.toml",
    "--quiet",
    # One lock for every Python we test and every system we name, by markers.
    "--universal", "--python-version", "3.11",
    "--generate-hashes",
    "--no-emit-index-url", "--no-emit-find-links",
    "--custom-compile-command", "scripts/lock",
    # The demo speaks, so what it runs on has a voice; and it plays whatever it is given.
    "--extra", "espeak", "--extra", "audio",
    "--group", "build",
)  # fmt: skip


def lock(root: Path, arguments: Sequence[str], console: Console) -> int:
    """Pins that still fit are kept; `--upgrade` or `--upgrade-package NAME` moves them."""
    with tempfile.TemporaryDirectory() as folder:
        uv = _install_uv(Path(folder), console)
        run = ["--output-file", "locks/run.txt"]
        dev = ["--group", "dev", "--constraint", "locks/run.txt", "--output-file", "locks/dev.txt"]
        for extra in (run, dev):
            console.line(f"[lock] {extra[-1]}")
            done = subprocess.run([uv, *_COMMON, *extra, *arguments], cwd=root, check=False)
            if done.returncode != 0:
                return done.returncode
    return 0


def _install_uv(folder: Path, console: Console) -> Path:
    console.line(f"[lock] fetching {_UV}")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), _UV]
    env = os.environ | {"PIP_USER": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if done.returncode != 0:
        raise Trouble(f"pip could not fetch {_UV}:\n{done.stderr}", pip_remedy(done.stderr))
    return folder / "bin" / ("uv.exe" if sys.platform == "win32" else "uv")
