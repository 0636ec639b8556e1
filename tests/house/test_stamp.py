import sys
from dataclasses import replace
from pathlib import Path

import pytest

from house.stamp import EMPTY, Stamp, Todo, read_stamp, todo, wanted, write_stamp
from tests.house.tree import PROJECT, make_tree

PYTHON = Path(sys.executable)
WHOLE = Stamp(python="3.11", root="/r", run="1", dev="2", project="3")


def test_nothing_is_left_to_do_where_everything_matches() -> None:
    assert not todo(WHOLE, WHOLE, "run")
    assert not todo(WHOLE, WHOLE, "dev")


def test_a_fresh_environment_needs_everything() -> None:
    assert todo(EMPTY, WHOLE, "run") == Todo(packages=True, project=True)


def test_the_dev_lock_brings_the_run_lock() -> None:
    have = replace(EMPTY, root="/r", project="3").with_lock("dev", WHOLE)
    assert not todo(have, WHOLE, "run")


def test_the_run_lock_does_not_bring_the_dev_lock() -> None:
    have = replace(WHOLE, dev="").with_lock("run", WHOLE)
    assert not todo(have, WHOLE, "run")
    assert todo(have, WHOLE, "dev") == Todo(packages=True, project=False)


def test_another_interpreter_or_another_place_is_noticed() -> None:
    assert todo(WHOLE, replace(WHOLE, python="3.12"), "run") == Todo(True, True)
    assert todo(WHOLE, replace(WHOLE, root="/moved"), "run") == Todo(False, True)


def test_a_new_version_or_dependency_reinstalls_the_project_and_tools_do_not(
    tmp_path: Path,
) -> None:
    root = make_tree(tmp_path)
    before = wanted(root, PYTHON)
    project = root / "pyproject.toml"

    project.write_text(PROJECT.replace("100", "80"), encoding="utf-8")
    assert wanted(root, PYTHON) == before
    project.write_text(PROJECT.replace("hatchling", "other"), encoding="utf-8")
    assert wanted(root, PYTHON).project != before.project
    project.write_text(PROJECT, encoding="utf-8")
    (root / "tenuto" / "__init__.py").write_text('__version__ = "1.1"\n', encoding="utf-8")
    assert wanted(root, PYTHON).project != before.project


def test_a_changed_lock_is_noticed_and_its_line_endings_are_not(tmp_path: Path) -> None:
    root = make_tree(tmp_path)
    before = wanted(root, PYTHON)
    (root / "locks" / "run.txt").write_bytes(b"one==1\r\n")
    assert wanted(root, PYTHON) == before
    (root / "locks" / "run.txt").write_bytes(b"one==2\n")
    assert wanted(root, PYTHON).run != before.run


def test_a_stamp_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "stamp.json"
    # A path that is no Unicode, as file systems allow.
    stamp = replace(WHOLE, root="/r\udcfc")
    write_stamp(path, stamp)
    assert read_stamp(path) == stamp
    assert [file.name for file in tmp_path.iterdir()] == ["stamp.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "{}", '{"python": "3.11"}'])
def test_a_torn_or_foreign_stamp_counts_as_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "stamp.json"
    assert read_stamp(path) == EMPTY
    path.write_text(text, encoding="utf-8")
    assert read_stamp(path) == EMPTY
