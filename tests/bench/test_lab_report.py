"""The lab's report: complete, self-contained, and harmless whatever is in the results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from bench.lab.figures import ASSUMPTIONS
from bench.lab.record import Results
from bench.lab.report import page, summary
from tenuto.errors import OperatorError
from tests.support.lab_results import EXTREMES, HOSTILE, MODES, mutilated, profile, results, setting

VOID = {"meta", "link", "br", "hr", "img", "input", "path"}


class Parsed(HTMLParser):
    """Every element with its attributes, and the text; complains about what does not nest."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.flaws: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.flaws += [f"<{tag}> is not closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if len(dict(attrs)) != len(attrs):
            self.flaws.append(f"<{tag}> has an attribute twice")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.flaws.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))

    def named(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attributes for name, attributes in self.elements if name == tag)


@pytest.fixture(scope="module", params=EXTREMES)
def extreme(request: pytest.FixtureRequest) -> tuple[str, Results]:
    name = str(request.param)
    return name, EXTREMES[name]()


def test_whatever_was_measured_makes_a_page_that_holds(extreme: tuple[str, Results]) -> None:
    name, made = extreme
    text = page(made)
    parsed = Parsed(text)
    assert parsed.flaws == []
    assert text.startswith("<!DOCTYPE html>")
    text.encode("utf-8")
    # Nothing is fetched and nothing runs.
    tags = {tag for tag, _ in parsed.elements}
    assert not tags & {"script", "iframe", "img", "object", "embed", "base", "form", "image", "use"}
    assert [each["href"] for each in parsed.named("link")] == ["data:,"]
    for tag, attributes in parsed.elements:
        assert not [each for each in attributes if each.startswith("on")], tag
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith(("#", "data:"))
    assert "url(" not in text
    assert "@import" not in text
    (policy,) = (each["content"] for each in parsed.named("meta") if "http-equiv" in each)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    # Every number is one, or is told to be none.
    assert not re.search(r"\b(nan|inf|None)\b", parsed.text), name
    assert not re.search(r'="[^"]*\b(nan|inf|None)\b', text), name


def test_whatever_was_measured_fits_a_screen(extreme: tuple[str, Results]) -> None:
    _, made = extreme
    for width in (80, 60, 40, 200):
        lines = summary(made, width).splitlines()
        assert len(lines) <= 24
        assert max(map(len, lines)) <= width
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", "".join(lines))


def test_pictures_have_names_and_tables_captions() -> None:
    text = page(results())
    pictures = re.findall(r'<svg class="(wide|narrow)".*?</svg>', text, flags=re.DOTALL)
    assert sorted(pictures) == ["narrow"] * 3 + ["wide"] * 3
    for found in re.findall(
        r'<svg class="(?:wide|narrow)"[^>]*>(.*?)</svg>', text, flags=re.DOTALL
    ):
        assert re.match(r"<title>[^<]+</title><desc>[^<]+</desc>", found)
    assert text.count("<table") == text.count("<caption>") > 5
    assert '<html lang="en">' in text
    for scroller in Parsed(text).named("div"):
        if scroller.get("class") == "scroll":
            assert scroller["tabindex"] == "0"
            assert scroller["aria-label"]


def test_all_that_a_reader_needs_is_there() -> None:
    made = results()
    told = Parsed(page(made)).text
    for mode in MODES:
        assert mode.name in told
        assert mode.summary in told
    for words in (
        made.setting.command, "aioquic", "1.7.2", "6.18.5", "5 of 5", "seed", "Bonferroni",
        "RFC 3550", "no listening test", "p99", "handshake", "first audio", "kbit/s", "MOS",
        "concealed", "longest unheard", "limit", "The profile, value by value", "both delay 40 ms",
    ):  # fmt: skip
        assert words in told, words
    for assumption in ASSUMPTIONS:
        assert assumption in told


def headline(made: Results) -> str:
    found = re.search(r"<h1>(.*?)</h1>", page(made), flags=re.DOTALL)
    assert found
    return found[1].replace("\u00a0", " ")


def test_the_headline_says_what_was_found_and_how_sure() -> None:
    assert re.fullmatch(
        r"On rtt80-loss5, quic-stream left [\d.]+ % of the audio late or lost at 150 ms of playout"
        r" delay \(95 % interval [\d.]+–[\d.]+ %\); tcp-cubic left [\d.]+ % \(worse\) and"
        r" tcp-bbr [\d.]+ % \(no difference shown\)\.",
        headline(results()),
    )


def test_no_loss_is_told_with_its_bound() -> None:
    told = headline(results(loss=0.0))
    assert "left 0 % of the audio" in told
    assert "(0–0.03 %, from 10,000 frames)" in told
    assert "tcp-cubic left 0 % and tcp-bbr 0 % (no difference shown)" in told


def test_few_seeds_are_told_and_no_better_nor_worse() -> None:
    made = results(asked=setting(seeds=9))
    told = Parsed(page(made)).text
    assert "too few seeds to compare" in headline(made)
    assert "<b>better</b>" not in page(made)
    assert "<b>worse</b>" not in page(made)
    assert "too few seeds" in told
    assert "(one seed)" in headline(EXTREMES["one seed"]())


def test_the_headline_is_of_what_counts() -> None:
    made = EXTREMES["three profiles"]()
    first = made.setting.profiles[0].name
    waves = tuple(
        wave if wave.profile == first else replace(wave, faults=("too busy",))
        for wave in made.waves
    )
    assert headline(replace(made, waves=waves)).startswith(f"On {first}, quic-stream left")


def test_several_profiles_have_an_overview_with_links() -> None:
    text = page(EXTREMES["three profiles"]())
    assert headline(EXTREMES["three profiles"]()).startswith("Over 3 profiles, quic-stream left")
    parsed = Parsed(text)
    targets = [each["href"] for each in parsed.named("a")]
    assert targets == ["#p0", "#p1", "#p2"]
    assert {each.get("id") for each in parsed.named("section")} >= {"p0", "p1", "p2"}


def test_an_interrupted_run_says_so() -> None:
    words = "The run was interrupted"
    assert words in page(replace(EXTREMES["one mode"](), complete=False))
    assert words not in page(EXTREMES["one mode"]())
    assert "interrupted" in summary(replace(EXTREMES["one mode"](), complete=False), 80)


def test_waves_that_do_not_count_are_named_with_the_reason() -> None:
    made = EXTREMES["some invalid"]()
    told = Parsed(page(made)).text
    assert "1 of 6 waves did not count" in told
    assert "all cores busy: 97 %, the limit is 90 %" in told
    assert "seeds 3, 4" in told
    assert "For 1 of them a repetition counts." in told
    assert "1 of 6 waves did not count" in summary(made, 80)
    told = Parsed(page(EXTREMES["no valid wave"]())).text
    assert "Nothing was measured on rtt80-loss5 that counts." in told
    assert "second attempt" in told


def test_many_waves_that_do_not_count_are_folded() -> None:
    made = EXTREMES["many profiles"]()
    waves = tuple(replace(wave, faults=("too busy",)) for wave in made.waves[:7])
    text = page(replace(made, waves=(*waves, *made.waves[7:])))
    assert "<details><summary>Which, and why</summary><ul><li>profile-0, seeds 1, 2:" in text
    assert "a repetition counts" not in text


def test_seeds_that_are_in_no_figure_are_named() -> None:
    made = results(asked=setting(modes=MODES[:2], seeds=4, seconds=2))
    waves = (replace(made.waves[0], faults=("too busy",)), made.waves[1])
    told = Parsed(page(replace(made, waves=waves))).text
    assert "Seeds that are in no figure, for no wave of theirs counts: 1, 2." in told
    assert "Seeds that are in no figure" not in page(made)


def test_flows_that_ended_early_are_counted_and_told() -> None:
    told = Parsed(page(EXTREMES["troubled"]())).text
    assert "tcp-bbr: 10 of 10 flows ended early: the connection was reset (10×)." in told
    assert "ref-streams: 3 of 10 flows got no frame at all" in told
    assert "13 of 80 flows ended early" in summary(EXTREMES["troubled"](), 80)


def test_text_from_elsewhere_is_only_text() -> None:
    text = page(EXTREMES["hostile"]())
    assert "<script" not in text
    assert HOSTILE in Parsed(text).text
    for bad in ("\x00", "\x1b", "\u202e", "\ud800"):
        assert bad not in text


def test_a_delay_on_which_repairs_land_is_pointed_out() -> None:
    words = "where a frame that was lost once comes again (100 ms: a round trip and a frame)"
    assert words in Parsed(page(results())).text
    assert words not in Parsed(page(results(loss=0.0))).text


def test_modes_are_told_apart_without_colour() -> None:
    text = page(results())
    legend = re.search(r'<ul class="legend">(.*?)</ul>', text, flags=re.DOTALL)
    assert legend
    samples = re.findall(r'class="curve( product)?[^"]*"( stroke-dasharray="[^"]*")?', legend[1])
    marks = re.findall(r'class="mark[^"]*" d="[^"]*?([a-z].*?)"', legend[1])
    assert len(samples) == len(set(samples)) == 8
    assert len(marks) == len(set(marks)) == 8


def test_the_same_results_make_the_same_page() -> None:
    made = results(asked=setting(seeds=2, seconds=2))
    assert page(made) == page(Results.from_json(made.to_json(), "results.json"))


def test_many_profiles_say_how_many_are_left_out_of_the_summary() -> None:
    told = summary(EXTREMES["many profiles"](), 80)
    assert re.search(r"^and \d+ more, in the report$", told, flags=re.MULTILINE)


def test_a_profile_without_text_has_no_fold_for_it() -> None:
    note = replace(profile(), text="")
    made = results(asked=setting(profiles=[note], seeds=2, seconds=2))
    assert "value by value" not in page(made)


def test_whatever_is_changed_in_results_that_are_read_makes_a_page() -> None:
    shown = 0
    for path, text in mutilated():
        try:
            made = Results.from_json(text, "results.json")
        except OperatorError:
            continue
        shown += 1
        assert Parsed(page(made)).flaws == [], path
        assert len(summary(made, 80).splitlines()) <= 24, path
    assert shown > 150
