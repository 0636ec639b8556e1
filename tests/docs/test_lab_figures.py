"""The page on the lab's figures says what the code does."""

from __future__ import annotations

from bench.lab.figures import PLAYOUT, STATED, Verdict
from bench.lab.figures.comparison import FEWEST_PAIRS
from bench.lab.figures.validity import LIMITS
from tests.docs.pages import ROOT, table

PAGE = ROOT / "docs" / "lab-figures.md"


def test_every_limit_of_a_wave_is_listed() -> None:
    listed = {
        row["figure, worst of all links of the wave"]: row["at most"]
        for row in table(PAGE, "figure, worst of all links of the wave")
    }
    told = {"ms": "{:.0f} ms", "%": "{:.0f} %", "packets": "{:.0f}"}
    scale = {"ms": 1000, "%": 100, "packets": 1}
    assert listed == {
        limit.what: told[limit.unit].format(scale[limit.unit] * limit.most) for limit in LIMITS
    }


def test_every_verdict_has_its_rule() -> None:
    words = " ".join(row["word"] for row in table(PAGE, "word"))
    for verdict in Verdict:
        assert verdict.value in words


def test_the_numbers_are_those_of_the_code() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    delays = [f"{1000 * each:.0f}" for each in PLAYOUT]
    assert f"at {', '.join(delays[:-1])} and {delays[-1]} ms" in text
    assert f"At **{1000 * STATED:.0f} ms**" in text
    assert f"fewer than {FEWEST_PAIRS} pairs" in text
