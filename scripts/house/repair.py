"""Packages that a killed pip left half installed."""

import shutil
from importlib.metadata import Distribution
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
            if not _is_whole(Distribution.at(metadata)):
                forgotten.append(metadata.name.removesuffix(".dist-info"))
                shutil.rmtree(metadata)
    return forgotten


def _site_packages(venv: Path) -> list[Path]:
    return [*venv.glob("lib/python3*/site-packages"), *venv.glob("Lib/site-packages")]


def _is_whole(distribution: Distribution) -> bool:
    # pip writes RECORD last.
    if distribution.read_text("RECORD") is None or distribution.read_text("METADATA") is None:
        return False
    return all(
        distribution.locate_file(file).exists()  # type: ignore[attr-defined, unused-ignore]
        for file in distribution.files or ()
        if not str(file).endswith(".pyc")
    )
