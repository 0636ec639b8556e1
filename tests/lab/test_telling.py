"""Progress: what is written where no terminal is."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from bench.lab.telling import BarTelling, LineTelling, clock_time, telling


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.2, "0:00"),
        (7.6, "0:08"),
        (31.0, "0:30"),
        (58.0, "1:00"),
        (127.0, "2:05"),
        (3_721.0, "1:02:00"),
    ],
)
def test_far_away_is_told_roughly(seconds: float, told: str) -> None:
    assert clock_time(seconds) == told


def test_a_line_for_each_step_with_the_time_left() -> None:
    out = io.StringIO()
    with LineTelling(Console(file=out, width=40)) as telling:
        telling.stage("making link 1 of 2")
        telling.progress(0.1, 65.0)
        telling.stage("making link 2 of 2")
        telling.stage("wave 1 of 1")
        telling.note("[bold]escape \x1b[31m and a line that is longer than the console is wide")
    assert out.getvalue().splitlines() == [
        "lab: making link 1 of 2",
        "lab: wave 1 of 1 (about 1:05 left)",
        "lab: [bold]escape \\x1b[31m and a line that is longer than the console is wide",
    ]


def test_on_a_terminal_a_bar_shows_the_time_left() -> None:
    out = io.StringIO()
    with BarTelling(Console(file=out, width=100, force_terminal=True)) as telling:
        telling.stage("wave [1] of 2")
        telling.progress(0.5, 65.0)
        telling.note("not valid: too busy")
    told = out.getvalue()
    assert "wave [1] of 2" in told
    assert "about 1:05 left" in told
    assert "not valid: too busy\n" in told


@pytest.mark.parametrize(
    ("terminal", "kind"), [("xterm", BarTelling), ("dumb", LineTelling)], ids=["xterm", "dumb"]
)
def test_on_a_dumb_terminal_nothing_is_drawn_over(
    terminal: str, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", terminal)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert type(telling()) is kind


def test_where_nobody_listens_nothing_is_lost() -> None:
    class Gone(io.StringIO):
        tried = 0

        def write(self, text: str) -> int:
            self.tried += 1
            raise OSError(5, "Input/output error")

    for kind in (LineTelling, BarTelling):
        nobody = Gone()
        with kind(Console(file=nobody)) as deaf:
            deaf.stage("wave 1 of 1")
            deaf.progress(0.5, 1.0)
            deaf.note("a word")
        assert nobody.tried
