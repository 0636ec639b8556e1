"""The Markdown pages as the tests read them: blocks, tables, links, anchors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGES", "ROOT", "Block", "anchors", "blocks", "lines", "links", "name", "table"]

ROOT = Path(__file__).parents[2]

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "certs" / "README.md",
    ROOT / "changes" / "README.md",
]

_FENCE = re.compile(r"(?P<indent> *)```(?P<language>[\w-]*)\s*")
_HEADING = re.compile(r"#{1,6} (?P<title>.+)")
_LINK = re.compile(r"(?<!!)\[[^\]\[]*\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"`[^`]*`")
_ROW = re.compile(r"(?<!\\)\|")
_PUNCTUATION = re.compile(r"[^\w\- ]")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; `line` is that of its first line of text, from 1."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{name(self.page)}:{self.line}"


def name(page: Path) -> str:
    """The page's path below the root."""
    return page.relative_to(ROOT).as_posix()


def lines(page: Path) -> Iterator[tuple[int, str]]:
    """The lines outside fenced blocks, with their numbers."""
    fence = ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if fence:
            fence = "" if line.strip() == "```" else fence
        elif match := _FENCE.fullmatch(line):
            fence = match[0]
        else:
            yield number, line


def blocks(page: Path) -> Iterator[Block]:
    """All fenced blocks; `ValueError` for one that does not end."""
    open_block: Block | None = None
    taken: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        match = _FENCE.fullmatch(line)
        if open_block is not None:
            if line.strip() == "```":
                text = "".join(f"{row}\n" for row in taken)
                yield Block(page, open_block.line, open_block.language, text)
                open_block, taken = None, []
            else:
                taken.append(line)
        elif match is not None:
            language = match["language"]
            open_block = Block(page, number + 1, language, "")
    if open_block is not None:
        raise ValueError(f"{open_block} does not end")


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings."""
    found: dict[str, int] = {}
    given: set[str] = set()
    for _, line in lines(page):
        if match := _HEADING.fullmatch(line):
            plain = _PUNCTUATION.sub("", match["title"].replace("`", "").lower())
            anchor = plain.strip().replace(" ", "-")
            count = found.get(anchor, 0)
            found[anchor] = count + 1
            given.add(f"{anchor}-{count}" if count else anchor)
    return given


def links(page: Path) -> Iterator[tuple[int, str]]:
    """The targets of all links, with their lines."""
    for number, line in lines(page):
        for match in _LINK.finditer(_CODE.sub("", line)):
            yield number, match["target"]


def table(page: Path, first: str) -> list[dict[str, str]]:
    """The rows of all tables whose first column is called `first`, as column to cell."""
    rows: list[dict[str, str]] = []
    columns: list[str] = []
    for _, line in lines(page):
        cells = [cell.strip().replace("\\|", "|") for cell in _ROW.split(line)[1:-1]]
        if not line.startswith("|"):
            columns = []
        elif not columns and cells[0] == first:
            columns = cells
        elif columns and not set("".join(cells)) <= set("-: "):
            assert len(cells) == len(columns), f"{name(page)}: {line}"
            rows.append(dict(zip(columns, cells, strict=True)))
    assert rows, f"{name(page)} has no table that begins with {first!r}"
    return rows
