"""Packages that a killed pip left half installed."""

import csv
import shutil
from pathlib import Path

__all__ = ["remove_half_installed"]


def remove_half_installed(venv: Path) -> list[str]:
    """Forget every package that lacks files it lists, so that pip installs it again.

    pip takes a package's metadata folder for the package: without a look at the files behind it
    a torn one would stay torn for good.
    """
    forgotten = []
    for site in _site_packages(venv):
        for metadata in sorted(site.glob("*.dist-info")):
            if not _is_whole(metadata):
                forgotten.append(metadata.name.removesuffix(".dist-info"))
                shutil.rmtree(metadata)
    return forgotten


def _site_packages(venv: Path) -> list[Path]:
    return [*venv.glob("lib/python3*/site-packages"), *venv.glob("Lib/site-packages")]


def _is_whole(metadata: Path) -> bool:
    # pip writes RECORD last. It is read here, for the library's reader leaves out what is missing.
    record = metadata / "RECORD"
    if not record.is_file() or not (metadata / "METADATA").is_file():
        return False
    with record.open(encoding="utf-8", newline="") as lines:
        listed = [row[0] for row in csv.reader(lines) if row]
    return all((metadata.parent / name).exists() for name in listed if not name.endswith(".pyc"))
