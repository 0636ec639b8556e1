"""Become an ordinary user, with the interpreter and this repository still readable.

`python unprivileged.py COMMAND...`, as root: both may lie below a folder of root's own, so that
such folders are covered, for this process alone, by open ones.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from netem.kernel.libc import CLONE_NEWNS, mount, unshare

NOBODY = 65_534
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000


def open_up(wanted: Path) -> None:
    """Let everybody pass through the folders above, and see nothing else of them."""
    for folder in reversed(wanted.parents):
        if folder.stat().st_mode & 0o001:
            continue
        child = folder / wanted.relative_to(folder).parts[0]
        held = os.open(child, os.O_PATH)
        mount("none", str(folder), "tmpfs", 0)
        folder.chmod(0o755)
        child.mkdir()
        mount(f"/proc/self/fd/{held}", str(child), None, MS_BIND | MS_REC)
        os.close(held)


def main() -> None:
    unshare(CLONE_NEWNS)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    repository = Path(__file__).parents[2]
    for wanted in {Path(sys.executable).resolve(), Path(sys.prefix), repository}:
        open_up(wanted)
    os.chdir(repository)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
