"""Links lead somewhere, blocks say what they are, and nothing outside the repository is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, blocks, lines, links, name

RUN = {"sh", "console", "python"}
SHOWN = {"text", "http", "json", "vector", "toml"}

# They would promise what only one machine has.
FOREIGN = re.compile(r"/(?:tmp|root|home)\b|localhost:\d{5}\b")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_relative_links_and_anchors_exist(page: Path) -> None:
    for line, target in links(page):
        where = f"{name(page)}:{line}"
        if re.match(r"[a-z]+:", target):
            assert target.startswith("https://"), f"{where}: {target}"
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{where}: {target}"
        assert there.is_relative_to(ROOT), f"{where}: {target}"
        if anchor:
            assert anchor in anchors(there), f"{where}: {target}; there are {anchors(there)}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in blocks(page):
        assert block.language in RUN | SHOWN, f"{block}: {block.language or 'no language'}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pages_stand_on_their_own(page: Path) -> None:
    for number, line in lines(page):
        assert not FOREIGN.search(line), f"{name(page)}:{number}: {line}"
        assert len(line) <= 100 or line.startswith("|"), f"{name(page)}:{number} is long"


def test_every_page_of_docs_is_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        for _, target in links(page):
            path = target.partition("#")[0]
            if path and not re.match(r"[a-z]+:", path):
                waiting.append((page.parent / path).resolve())
    assert [name(page) for page in PAGES if page not in reached] == []
