"""docs/architecture.md and docs/decisions/ against the code and what is installed."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest

from house.purity import pure_packages
from tenuto.session import SessionLimits, State, Trigger
from tenuto.session.lifecycle import TRANSITIONS
from tests.docs.pages import ROOT, links, name, table
from tests.docs.test_server_behaviour import number, ticked

ARCHITECTURE = ROOT / "docs" / "architecture.md"
DECISIONS = ROOT / "docs" / "decisions"
LICENCES = table(DECISIONS / "0013-dependencies-and-licences.md", "package")


def test_the_lifecycle_is_the_table_of_the_code() -> None:
    listed = {
        (State[row["state"]], trigger): State[row[trigger.name]]
        for row in table(ARCHITECTURE, "state")
        for trigger in Trigger
        if row[trigger.name] != "–"
    }
    assert listed == TRANSITIONS


def test_states_live_as_long_as_the_limits_say() -> None:
    limits = SessionLimits()
    lives = {row["state"]: row["lives"] for row in table(ARCHITECTURE, "state")}
    assert lives.pop("EXPIRED") == "–"
    assert {state: number(text) for state, text in lives.items()} == {
        "NEW": limits.unattached,
        "PLAYING": limits.max_age,
        "IDLE": limits.retention,
        "PAUSED": limits.paused,
    }


def test_every_package_is_listed_and_the_pure_ones_are_those_of_the_contracts() -> None:
    pure = pure_packages(ROOT)
    rows = {ticked(row["package"])[0]: row["pure"] for row in table(ARCHITECTURE, "package")}
    assert sorted(package for package, word in rows.items() if word == "yes") == sorted(pure)
    tree = {
        f"tenuto.{path.parent.name if path.name == '__init__.py' else path.stem}"
        for path in [*(ROOT / "tenuto").glob("*/__init__.py"), *(ROOT / "tenuto").glob("[!_]*.py")]
    }
    inside = ("netem.", "bench.")
    apart = {package for package in pure if package.count(".") > 1 or package.startswith(inside)}
    assert tree | {"fallback", "netem", "quicserver"} == rows.keys() - apart


def test_decisions_are_numbered_indexed_and_of_one_shape() -> None:
    pages = sorted(DECISIONS.glob("[0-9]*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    indexed = [target for _, target in links(DECISIONS / "README.md")]
    assert indexed == [page.name for page in pages]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"^#+ (.+)$", text, re.MULTILINE)[1:] == [
            "Context",
            "Decision",
            "Why",
            "Consequences",
        ], name(page)
        assert text.startswith(f"# {int(page.name[:4])}. "), name(page)


def licence(package: str) -> str:
    """What an installed package says of itself, in short."""
    said = metadata(package)
    if expressions := said.get_all("License-Expression"):
        return str(expressions[0])
    kinds = [
        kind.rpartition(":: ")[2]
        for kind in said.get_all("Classifier") or []
        if kind.startswith("License :: OSI Approved")
    ]
    short = {"Mozilla Public License 2.0 (MPL 2.0)": "MPL 2.0"}
    return ", ".join(
        short.get(kind, kind.removesuffix(" License").removesuffix(" Software")) for kind in kinds
    )


@pytest.mark.parametrize("row", LICENCES, ids=lambda row: row["package"].strip("`"))
def test_licences_are_what_the_installed_packages_say(row: dict[str, str]) -> None:
    (package,) = ticked(row["package"])
    try:
        assert row["licence"] == licence(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed here")


def test_every_required_package_has_its_licence_listed() -> None:
    listed = {normal(ticked(row["package"])[0]) for row in LICENCES}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {normal(re.split(r"[=<>;\[ ]", line)[0]) for line in project["dependencies"]}
    assert required <= listed
    # What only builds, brings speech or reads files is no part of the core.
    apart = {"editables", "espeakng-loader", "hatchling", "packaging", "pathspec", "pluggy"}
    apart |= {"soundfile", "soxr", "tomlkit", "trove-classifiers"}
    lock = (ROOT / "locks" / "run.txt").read_text(encoding="utf-8")
    locked = {normal(found) for found in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}
    assert locked - apart == listed


def normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def test_the_readme_shows_its_measurement_with_what_it_was_made_on() -> None:
    text = Path(ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"<!-- measured -->\n(.*?)<!-- /measured -->", text, re.DOTALL)
    for word in ("Tenuto, QUIC", "Tenuto, TCP", "bench first_audio", "loopback", "2 cores"):
        assert word in block
