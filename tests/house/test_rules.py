from pathlib import Path

import pytest

from house.changes import check_fragments
from house.purity import pragmas, pure_packages

ROOT = Path(__file__).parents[2]
SETTINGS = """\
[tool.towncrier]
directory = "changes"
ignore = ["README.md"]
type = [{directory = "feature"}, {directory = "fix"}]

[tool.importlinter]
contracts = [
    {id = "other", source_modules = ["c"]},
    {id = "pure-packages", source_modules = ["a.b"]},
    {id = "netem-pure-packages", source_modules = ["a.one"]},
]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "README.md").touch()
    return tmp_path


@pytest.mark.parametrize("name", ["12.fix.md", "+some-words.feature.md", "12.fix.1.md"])
def test_good_fragments(root: Path, name: str) -> None:
    (root / "changes" / name).write_text("It works.\n", encoding="utf-8")
    assert check_fragments(root) == []


@pytest.mark.parametrize(
    "name", ["12.md", "12.bug.md", "fix.md", "words.fix.md", "+12.fix.txt", "12.fix.rst"]
)
def test_bad_fragments_are_named(root: Path, name: str) -> None:
    (root / "changes" / name).write_text("It works.\n", encoding="utf-8")
    (flaw,) = check_fragments(root)
    assert flaw.startswith(f"changes/{name}: want NUMBER.TYPE.md")


def test_an_empty_fragment_is_named(root: Path) -> None:
    (root / "changes" / "1.fix.md").write_text("\n", encoding="utf-8")
    assert check_fragments(root) == ["changes/1.fix.md: is empty"]


def test_a_pragma_in_a_pure_package_is_named(root: Path) -> None:
    assert pure_packages(root) == ["a.b", "a.one"]
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "c.py").write_text("x = 1\nif x:  # pragma: no cover\n", encoding="utf-8")
    (root / "a" / "one.py").write_text("y = 1  # pragma: no branch\n", encoding="utf-8")
    (root / "a" / "two.py").write_text("z = 1  # pragma: no cover\n", encoding="utf-8")
    assert pragmas(root, pure_packages(root)) == ["a/b/c.py:2", "a/one.py:1"]


def test_every_pure_package_of_this_tree_is_there() -> None:
    for name in pure_packages(ROOT):
        path = ROOT.joinpath(*name.split("."))
        assert path.is_dir() or path.with_suffix(".py").is_file(), name
