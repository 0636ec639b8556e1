import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^([a-z0-9-]+)==(\S+)(?: ; (.+?))? \\$")


def read(name: str) -> str:
    return (ROOT / "locks" / name).read_text(encoding="utf-8")


def pins(name: str) -> set[tuple[str, str]]:
    found = (PIN.match(line) for line in read(name).splitlines())
    return {(match[1], match[2]) for match in found if match}


def test_dev_contains_run() -> None:
    # So that adding the one to the other never changes what is there.
    assert pins("run.txt") < pins("dev.txt")


@pytest.mark.parametrize("name", ["run.txt", "dev.txt"])
def test_every_pin_has_hashes_and_no_line_names_a_place(name: str) -> None:
    lines = read(name).splitlines()
    assert len(lines) > 100
    for number, line in enumerate(lines):
        if line.startswith("    --hash"):
            assert re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line), line
        elif not line.lstrip().startswith("#"):
            assert PIN.match(line), line
            assert lines[number + 1].startswith("    --hash"), line
        assert "://" not in line
        assert "--index" not in line
        assert "--find-links" not in line


def test_both_hold_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    run = {name for name, _ in pins("run.txt")}
    dev = {name for name, _ in pins("dev.txt")}

    def names(requirements: list[str]) -> set[str]:
        # Letters count alike in names of packages.
        return {re.split("[^A-Za-z0-9-]", each)[0].lower() for each in requirements}

    assert names(project["project"]["dependencies"]) <= run
    for extra in ("audio", "espeak"):
        assert names(project["project"]["optional-dependencies"][extra]) <= run
    assert names(project["dependency-groups"]["build"]) <= run
    assert names(project["dependency-groups"]["dev"]) <= dev
    for exact in project["project"]["dependencies"]:
        if "==" in exact:
            assert tuple(exact.split("==")) in pins("run.txt")
