"""The pure packages, as the import contracts in pyproject.toml name them."""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["PURE_CONTRACTS", "pragmas", "pure_packages"]

PURE_CONTRACTS = ("pure-packages", "netem-pure-packages", "lab-pure-packages")
"""The ids of the contracts: their sources are the one list of what is pure."""


def pure_packages(root: Path) -> list[str]:
    """Their dotted names."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    pure = [each for each in contracts if each.get("id") in PURE_CONTRACTS]
    return [str(name) for contract in pure for name in contract["source_modules"]]


def pragmas(root: Path, packages: Sequence[str]) -> list[str]:
    """Every "path:line" that asks coverage to look away."""
    return [
        f"{file.relative_to(root).as_posix()}:{number}"
        for package in packages
        for file in _files(root.joinpath(*package.split(".")))
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if "pragma:" in line
    ]


def _files(module: Path) -> Iterator[Path]:
    if module.is_dir():
        yield from sorted(module.rglob("*.py"))
    elif module.with_suffix(".py").is_file():
        yield module.with_suffix(".py")
