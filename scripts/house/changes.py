"""The names of the fragments in `changes/`: towncrier passes over one it does not know."""

import re
import tomllib
from pathlib import Path

__all__ = ["check_fragments"]


def check_fragments(root: Path) -> list[str]:
    """What is wrong with them, one line each."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    towncrier = settings["tool"]["towncrier"]
    types = [kind["directory"] for kind in towncrier["type"]]
    # An issue's number, or "+" and a few words where there is none.
    name = re.compile(rf"(\d+|\+[a-z0-9-]+)\.({'|'.join(types)})(\.\d+)?\.md")
    flaws = []
    for file in sorted((root / towncrier["directory"]).iterdir()):
        if file.name in towncrier["ignore"]:
            continue
        shown = file.relative_to(root).as_posix()
        if not name.fullmatch(file.name):
            flaws.append(f"{shown}: want NUMBER.TYPE.md or +some-words.TYPE.md, TYPE in {types}")
        elif not file.read_text(encoding="utf-8").strip():
            flaws.append(f"{shown}: is empty")
    return flaws
