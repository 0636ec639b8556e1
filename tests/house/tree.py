"""A project small enough to be made for one test."""

from pathlib import Path

PROJECT = """\
[build-system]
requires = ["hatchling"]

[project]
name = "tenuto"

[tool.ruff]
line-length = 100
"""


def make_tree(root: Path) -> Path:
    """What the house reads of a project, without anything to install."""
    (root / "locks").mkdir(parents=True)
    (root / "locks" / "run.txt").write_text("one==1\n", encoding="utf-8")
    (root / "locks" / "dev.txt").write_text("one==1\ntwo==2\n", encoding="utf-8")
    (root / "tenuto").mkdir()
    (root / "tenuto" / "__init__.py").write_text('__version__ = "1.0"\n', encoding="utf-8")
    (root / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    return root
