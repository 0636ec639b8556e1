"""The whole report as one file of HTML that asks nobody for anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.lab.figures import (
    ASSUMPTIONS,
    FEWEST_PAIRS,
    STATED,
    ModeTable,
    ProfileTable,
    tables,
)
from bench.lab.record import Results
from bench.lab.report import running
from bench.lab.report.draw import Line
from bench.lab.report.grid import differences, estimates, framed, opinions, shares
from bench.lab.report.names import legend, lines_of
from bench.lab.report.playout_chart import playout_chart
from bench.lab.report.style import CSS
from bench.lab.report.tail_chart import tail_chart
from bench.lab.report.text import SPACE, amount, bare, safe, short
from bench.lab.report.timeline import timeline
from bench.lab.report.wording import SHARE, finding, headline, notes, references

__all__ = ["page"]

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_AT: Final = f"{1000 * STATED:.0f}{SPACE}ms"

_WORDS: Final = (
    f"Late or lost is a frame that is not there {_AT} after it could first have come. A seed is one"
    " flow of every mode, over links alike. “No difference shown” says that these seeds do not"
    " settle which is better, not that both are the same."
)

_READING: Final = (
    "Lateness: how much later than the smallest delay of any frame of the profile a frame came. A"
    " frame that never came is infinitely late and stays in every share and every percentile.",
    f"Late or lost: not there when its turn came, if each frame is played so long after it could"
    f" first have come. Gaps, concealment and the headline are told at {_AT}.",
    "Intervals: 95 %, Student's t over the seeds, each seed one sample, longer to the side where"
    " they trail off; none is shown that is narrower than the digits. Ten seeds know little of what"
    " is seldom: the skewer the shares, the more often the truth is above (docs/lab-figures.md)."
    " Where the seeds agree to the frame (*) the frames bound the share instead, as if each stood"
    " alone, which is optimistic for losses that come together: ten seeds without a stall leave"
    " room for one in every fourth flow.",
    "Waiting and longest gaps: the median seed and the worst, for a mean would be the mishap of one"
    " seed.",
    f"Better and worse: only from {FEWEST_PAIRS} paired seeds on, only where the corrected interval"
    " of their differences leaves out 0 (what a sign-flip test rejects; a sign test, for medians),"
    " and only for more than one frame in a flow, 1 ms, 1 kbit/s or 0.05 of a MOS."
    " The correction holds within a column. Of nine columns, one may still slip by"
    " chance: in about one of seven runs in which all modes do alike.",
    "Jitter of RFC 3550 is blind to what never came and to delay that stays: it is shown because"
    " others show it, and never without the share that never came.",
)


def page(results: Results) -> str:
    """One self-contained file: no script and no request; for screens, phones, the dark, paper."""
    found = tables(results)
    title = headline(found)
    body = "".join(
        (
            _header(results, found, title),
            "<main>",
            _overview(found),
            *(_profile(results, table, place, len(found) > 1) for place, table in enumerate(found)),
            _after(results),
            "</main>",
            _footer(),
        )
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{safe(_POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<title>Tenuto loss lab: {safe(title)}</title><link rel="icon" href="data:,">'
        f"<style>{CSS}</style></head><body>{body}</body></html>\n"
    )


def _header(results: Results, found: Sequence[ProfileTable], title: str) -> str:
    lead = references(found[0]) if len(found) == 1 else ""
    interrupted = (
        ""
        if results.complete
        else '<p class="alert">The run was interrupted. What follows is from the waves that were'
        " finished; each of them is whole, with all modes.</p>"
    )
    return (
        f'<header><p class="kicker">Tenuto loss lab · {safe(results.setting.started)}</p>'
        f"<h1>{safe(title)}</h1>"
        + (f'<p class="lead">{safe(lead)}</p>' if lead else "")
        + f'<p class="note">{safe(_WORDS)}</p>'
        + interrupted
        + running.invalid(results)
        + _facts(results, found)
        + "</header>"
    )


def _facts(results: Results, found: Sequence[ProfileTable]) -> str:
    setting = results.setting
    counted = sum(not wave.faults for wave in results.waves)
    frames = sum(len(mode.pooled) for table in found for mode in table.modes)
    facts = (
        ("profiles", f"{len(setting.profiles)}"),
        ("modes", f"{len(setting.modes)}"),
        ("seeds", f"{len(setting.seeds)}"),
        ("audio in each flow", f"{setting.seconds:g} s"),
        ("frames that count", f"{frames:,}"),
        ("waves that count", f"{counted} of {len(results.waves)}"),
    )
    cells = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    return f'<dl class="facts">{cells}</dl>'


def _overview(found: Sequence[ProfileTable]) -> str:
    """All profiles at once, where there are several."""
    if len(found) < 2:
        return ""
    names = list(dict.fromkeys(mode.name for table in found for mode in table.modes))
    rows = [[_shared(table.mode(name)) for name in names] for table in found]
    told = f"Late or lost at {_AT} of playout delay, % of all frames, by profile and mode."
    return framed(
        "Overview",
        told,
        [safe(short(name, 24)) for name in names],
        [(table.note.name, False) for table in found],
        rows,
        first="profile",
        anchors=[f"p{place}" for place in range(len(found))],
    )


def _shared(mode: ModeTable | None) -> str:
    return bare(mode.estimates[SHARE].value if mode else float("nan"), "share")


def _profile(results: Results, table: ProfileTable, place: int, several: bool) -> str:
    note = table.note
    head = f'<section id="p{place}"><h2>{safe(note.name)}</h2><p>{safe(note.summary)}</p>'
    told = f"<p><b>{safe(finding(table))}</b> {safe(references(table))}</p>" if several else ""
    text = (
        _folded("The profile, value by value", f"<pre>{safe(note.text)}</pre>") if note.text else ""
    )
    if not table.modes:
        return f'{head}{told}<p class="alert">No flow of it counts.</p>{text}</section>'
    places = {mode.name: at for at, mode in enumerate(results.setting.modes)}
    for mode in table.modes:
        places.setdefault(mode.name, len(places))
    lines = lines_of(table.modes, places)
    warned = "".join(f"<li>{safe(each)}</li>" for each in notes(table))
    return (
        head
        + told
        + (f'<ul class="plain note">{warned}</ul>' if warned else "")
        + _charts(table, lines)
        + "<h3>In figures</h3>"
        + shares(table)
        + differences(table)
        + estimates(table)
        + _folded("Estimated opinion, by the E-model of ITU-T G.107", opinions(table))
        + _strips(table, lines)
        + text
        + "</section>"
    )


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{title}</summary>{inside}</details>"


def _charts(table: ProfileTable, lines: Sequence[Line]) -> str:
    floor = (
        ""
        if table.floor is None
        else f" The path's own delay, {amount(table.floor, 'time')}, comes on top."
    )
    frames = max(len(mode.pooled) for mode in table.modes)
    return (
        f"<h3>Late or lost, by how long playing is put off</h3><figure>{legend(lines)}"
        f"{playout_chart(table, lines)}<figcaption>Bars: 95 % intervals over the seeds, side by"
        f" side at the dotted delays.{floor}</figcaption></figure>"
        f"<h3>How late the latest frames are</h3><figure>{tail_chart(table, lines)}"
        f"<figcaption>The distribution of lateness, stretched to its end: each decade to the right"
        f" is a tenth of the frames to its left. Dotted: {_AT} of playout delay. All seeds"
        f" together, {frames:,} frames a mode. A curve that rises to the top ends where frames"
        " never came.</figcaption></figure>"
    )


def _strips(table: ProfileTable, lines: Sequence[Line]) -> str:
    return (
        f"<h3>Frame by frame: seed {table.typical}</h3><figure>{timeline(table, lines)}"
        f"<figcaption>The seed in which the share of {safe(table.baseline or '')} late or lost at"
        f" {_AT} is the median one. A stem is a frame and its lateness in ms; the strong ones are"
        f" late or lost at {_AT} (dotted), those of the whole height never came. Ticks beneath are"
        " this flow's packets that the link dropped: the upper row on the way to the listener, the"
        " lower one on the way to the sender.</figcaption></figure>"
    )


def _after(results: Results) -> str:
    reading = "".join(f"<li>{safe(each)}</li>" for each in _READING)
    assumed = "".join(f"<li>{safe(each)}</li>" for each in ASSUMPTIONS)
    return (
        f'<section><h2>How to read it</h2><ul class="plain">{reading}</ul>'
        + _folded("What the E-model assumes", f'<ul class="plain">{assumed}</ul>')
        + "</section>"
        + f"<section><h2>How it was measured</h2><h3>Modes</h3>{running.modes(results)}"
        f"<h3>Machine</h3>{running.machine(results)}<h3>Again</h3>{running.again(results)}</section>"
    )


def _footer() -> str:
    return (
        "<footer>Made by tenuto lab. Every figure is defined in docs/lab-figures.md. results.json"
        " beside this file holds all that was measured.</footer>"
    )
