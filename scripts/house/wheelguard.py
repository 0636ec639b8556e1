"""What the built wheel must hold, and what it must not."""

import re
import subprocess
import zipfile
from configparser import ConfigParser
from pathlib import Path

from house.child import environment_for

__all__ = ["TOP_LEVELS", "build_wheel", "inspect_wheel"]

TOP_LEVELS = ("fallback", "netem", "quicserver", "tenuto")

_ENTRY_POINTS = {
    ("console_scripts", "tenuto"): "tenuto.cli.start:main",
    ("tenuto.commands", "serve"): "quicserver.command:serve",
}
_NO_PACKAGE_DATA = re.compile(r"(^|/)(tests?|bench|__pycache__|certs/dev)/|\.(pem|key|pyc)$")


def build_wheel(python: Path, root: Path, folder: Path) -> Path | str:
    """Build it there; a string is what went wrong."""
    command = [python, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, root]
    done = subprocess.run(
        [str(part) for part in command],
        cwd=root,
        env=environment_for(python.parent.parent, {}),
        capture_output=True,
        text=True,
        check=False,
    )
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        return done.stdout + done.stderr
    return wheels[0]


def inspect_wheel(wheel: Path) -> list[str]:
    """What is wrong with it, one line each."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        entry_points = archive.read(f"{info}/entry_points.txt").decode()
        metadata = archive.read(f"{info}/METADATA").decode()
    return [
        *_layout_flaws(names, info),
        *_entry_point_flaws(entry_points, names),
        *_metadata_flaws(metadata),
    ]


def _layout_flaws(names: list[str], info: str) -> list[str]:
    tops = sorted({name.split("/")[0] for name in names} - {info})
    flaws = []
    if tops != sorted(TOP_LEVELS):
        flaws.append(f"top-levels are {tops}, want exactly {sorted(TOP_LEVELS)}")
    for package in TOP_LEVELS:
        for file in ("__init__.py", "py.typed"):
            if f"{package}/{file}" not in names:
                flaws.append(f"{package}/{file} is missing")
    if not any(re.fullmatch(rf"{re.escape(info)}/(licenses/)?LICENSE", name) for name in names):
        flaws.append("LICENSE is missing")
    flaws += [f"{name} does not belong into it" for name in names if _NO_PACKAGE_DATA.search(name)]
    return flaws


def _entry_point_flaws(text: str, names: list[str]) -> list[str]:
    parsed = ConfigParser(delimiters=("=",))
    parsed.read_string(text)
    flaws = []
    for (group, name), target in _ENTRY_POINTS.items():
        found = parsed.get(group, name, fallback=None)
        module = target.split(":")[0].replace(".", "/")
        if found != target:
            flaws.append(f"entry point {group}: {name} is {found}, want {target}")
        elif not {f"{module}.py", f"{module}/__init__.py"} & set(names):
            flaws.append(f"entry point {group}: {name} names {target}, which is not there")
    return flaws


def _metadata_flaws(text: str) -> list[str]:
    wanted = ("Name: tenuto", "License-Expression: Apache-2.0", "Requires-Python: >=3.11")
    lines = text.splitlines()
    flaws = [f"metadata lacks {line!r}" for line in wanted if line not in lines]
    required = [
        line
        for line in lines
        if line.startswith("Requires-Dist: espeakng-loader") and "extra ==" not in line
    ]
    if required:
        flaws.append("the core requires espeakng-loader, which is GPL-3")
    return flaws
