import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from house.wheelguard import TOP_LEVELS, build_wheel, inspect_wheel

ROOT = Path(__file__).parents[2]
INFO = "tenuto-1.0.dist-info"
METADATA = """\
Name: tenuto
License-Expression: Apache-2.0
Requires-Python: >=3.11
Requires-Dist: espeakng-loader>=0.2; extra == 'espeak'
"""
ENTRY_POINTS = """\
[console_scripts]
tenuto = tenuto.cli.start:main

[tenuto.commands]
serve = quicserver.command:serve
"""


def contents() -> dict[str, str]:
    files = {f"{top}/{name}": "" for top in TOP_LEVELS for name in ("__init__.py", "py.typed")}
    return files | {
        "quicserver/command.py": "",
        "tenuto/cli/main.py": "",
        "tenuto/cli/start.py": "",
        f"{INFO}/METADATA": METADATA,
        f"{INFO}/entry_points.txt": ENTRY_POINTS,
        f"{INFO}/licenses/LICENSE": "",
    }


def inspect(folder: Path, files: dict[str, str]) -> list[str]:
    wheel = folder / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return inspect_wheel(wheel)


def test_the_wheel_of_this_tree_is_in_order(tmp_path: Path) -> None:
    wheel = build_wheel(Path(sys.executable), ROOT, tmp_path)
    assert isinstance(wheel, Path), wheel
    assert inspect_wheel(wheel) == []


def test_a_wheel_in_order_has_no_flaws(tmp_path: Path) -> None:
    assert inspect(tmp_path, contents()) == []


@pytest.mark.parametrize(
    ("extra", "flaw"),
    [
        ("bench/__init__.py", "top-levels are"),
        ("tests/test_a.py", "top-levels are"),
        ("tenuto/tests/test_a.py", "tenuto/tests/test_a.py does not belong"),
        ("tenuto/key.pem", "tenuto/key.pem does not belong"),
        ("tenuto/__pycache__/a.pyc", "does not belong"),
    ],
)
def test_what_does_not_belong_is_named(tmp_path: Path, extra: str, flaw: str) -> None:
    assert any(flaw in found for found in inspect(tmp_path, contents() | {extra: ""}))


@pytest.mark.parametrize(
    ("missing", "flaw"),
    [
        ("netem/py.typed", "netem/py.typed is missing"),
        ("fallback/__init__.py", "fallback/__init__.py is missing"),
        (f"{INFO}/licenses/LICENSE", "LICENSE is missing"),
        ("quicserver/command.py", "names quicserver.command:serve, which is not there"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, missing: str, flaw: str) -> None:
    files = contents()
    del files[missing]
    assert any(flaw in found for found in inspect(tmp_path, files))


def test_wrong_metadata_is_named(tmp_path: Path) -> None:
    files = contents()
    files[f"{INFO}/entry_points.txt"] = ENTRY_POINTS.replace("serve =", "server =")
    files[f"{INFO}/METADATA"] = METADATA.replace("; extra == 'espeak'", "").replace("Apache", "M")
    flaws = inspect(tmp_path, files)
    assert "entry point tenuto.commands: serve is None, want quicserver.command:serve" in flaws
    assert "metadata lacks 'License-Expression: Apache-2.0'" in flaws
    assert "the core requires espeakng-loader, which is GPL-3" in flaws


def test_a_source_archive_holds_the_tree_and_nothing_private(tmp_path: Path) -> None:
    from hatchling.builders.sdist import SdistBuilder

    archive = next(iter(SdistBuilder(str(ROOT)).build(directory=str(tmp_path))))
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    wanted = {"LICENSE", "README.md", "pyproject.toml", "locks/run.txt", "scripts/test"}
    assert wanted <= names
    assert "tests/house/test_wheel.py" in names
    private = (".venv", ".git/", ".mypy_cache", "certs/dev/")
    assert not [name for name in names if name.startswith(private) or "__pycache__" in name]
