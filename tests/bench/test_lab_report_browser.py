"""The lab's report in a real browser: nothing sticks out, is asked for, or complains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.lab.report import page
from tests.support.chromium import CHROMIUM, Browser, browser
from tests.support.lab_results import EXTREMES

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium to look at the report with"),
    pytest.mark.timeout(180),
]

OUTSIDE = """
(() => {
  const width = document.documentElement.clientWidth, found = [];
  for (const each of document.querySelectorAll("body *")) {
    if (each.closest(".scroll") && !each.matches(".scroll")) continue;
    const box = each.getBoundingClientRect();
    if (box.width && (box.right > width + 1 || box.left < -1)) {
      found.push([each.tagName, each.getAttribute("class"), box.left, box.right].join(" "));
    }
  }
  return found.slice(0, 5);
})()
"""
"""Elements that reach beyond the window, but for those in a table that scrolls by itself."""

SMALL = """
(() => {
  const svg = [...document.querySelectorAll("figure > svg")].filter(e => e.clientWidth);
  const sizes = svg.flatMap(e => [...e.querySelectorAll("text")].map(
    t => t.getBoundingClientRect().height));
  return [svg.length, Math.min(...sizes)];
})()
"""
"""How many charts are seen, and the height of their smallest line of text."""


@pytest.fixture(scope="module")
def shown() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "name", ["plausible", "hostile", "long names", "three profiles", "troubled", "no valid wave"]
)
def test_the_page_stays_within_its_window(
    shown: Browser, tmp_path: Path, name: str, width: int
) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(EXTREMES[name]()), encoding="utf-8")
    seen = shown.show(file, width)
    assert seen.value("[document.documentElement.scrollWidth, innerWidth]") == [width, width]
    assert seen.value(OUTSIDE) == []
    assert seen.requests() == [file.as_uri()]
    assert seen.complaints() == []
    assert seen.value("document.scripts.length") == 0


WIDEST = """
(() => {
  const found = [...document.querySelectorAll("body *")].filter(e =>
    e.getBoundingClientRect().right > innerWidth + 1);
  return found.slice(0, 3).map(e => [e.tagName, e.textContent.slice(0, 40)].join(" "));
})()
"""

SPLIT = """
(() => {
  const found = [];
  for (const cell of document.querySelectorAll("tbody th")) {
    const words = cell.textContent.split("-"), range = document.createRange();
    let at = 0;
    for (const word of words) {
      range.setStart(cell.firstChild, at);
      range.setEnd(cell.firstChild, at + word.length);
      if (range.getClientRects().length > 1) found.push(cell.textContent);
      at += word.length + 1;
    }
  }
  return found;
})()
"""
"""Names that are broken within a word."""


@pytest.mark.parametrize("width", [680, 720, 1040])
@pytest.mark.parametrize("name", ["plausible", "hostile", "long names", "three profiles"])
def test_all_of_it_is_on_paper(shown: Browser, tmp_path: Path, name: str, width: int) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(EXTREMES[name]()), encoding="utf-8")
    seen = shown.show(file, width, media="print")
    # 680 is A4 with its usual margins, at 96 to an inch; nothing on paper can be scrolled.
    assert seen.value(WIDEST) == []
    # A fold is open: nobody can open it on paper.
    assert seen.value(
        "[...document.querySelectorAll('details')].every(e => e.lastElementChild.clientHeight)"
    )
    if name == "plausible":
        assert seen.value(SPLIT) == []


@pytest.mark.parametrize("width", [390, 760, 1280])
def test_charts_are_legible(shown: Browser, tmp_path: Path, width: int) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(EXTREMES["plausible"]()), encoding="utf-8")
    charts, smallest = shown.show(file, width).value(SMALL)
    assert charts == 3
    assert smallest >= 10.5


@pytest.mark.parametrize(("media", "scheme"), [("", "light"), ("", "dark"), ("print", "light")])
def test_words_stand_out_from_their_ground(
    shown: Browser, tmp_path: Path, media: str, scheme: str
) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(EXTREMES["some invalid"]()), encoding="utf-8")
    seen = shown.show(file, 1280, media=media, scheme=scheme)
    told = seen.value(
        "['h1','.note','.alert','td small','figure .wide .name','figure .wide .axis'].map(s =>"
        " [getComputedStyle(document.querySelector(s))[s.includes('.wide') ? 'fill' : 'color'],"
        " getComputedStyle(document.body).backgroundColor])"
    )
    for words, ground in told:
        assert _contrast(words, ground) >= 4.5, (words, ground)


def _contrast(one: str, other: str) -> float:
    """WCAG 2.1, contrast ratio."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(each) / 255 for each in colour.strip("rgb()").split(",")[:3]]
    red, green, blue = (
        each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
