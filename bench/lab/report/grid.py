"""Tables of figures with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from bench.lab.figures import (
    CONFIDENCE,
    FIGURES,
    PLAYOUT,
    STATED,
    Comparison,
    Estimate,
    Figure,
    Ground,
    ModeTable,
    ProfileTable,
    Verdict,
    figure,
    late_or_lost,
    opinion,
    rating,
)
from bench.lab.report.text import bare, interval, safe, signed, unit_of

__all__ = ["differences", "estimates", "framed", "opinions", "shares"]

_AT = f"{1000 * STATED:.0f} ms"

_Group = tuple[str, str, tuple[str, ...], dict[str, str]]

_SHARES: Final[_Group] = (
    "Late or lost",
    "Share of all frames that were not there when their turn came, by playout delay.",
    (*map(late_or_lost, PLAYOUT), "never"),
    {},
)
_GROUPS: Final[tuple[_Group, ...]] = (
    (
        "Lateness and gaps",
        f"Lateness above the path's own delay. Jitter is of the frames that came only: read it with"
        f" the share beside it. What is concealed, and the longest run unheard, are at {_AT}. Of"
        " the longest run and gap: the median seed, and the worst.",
        ("p50", "p95", "p99", "jitter", "never", "concealed", "unheard", "silence"),
        {},
    ),
    (
        "Connecting, and the wire",
        "Handshake and first audio, from the first packet: the median seed, and the worst. Bytes"
        " are those of whole IP packets, the dropped ones too, over the seconds of audio.",
        ("handshake", "first_audio", "down", "up", "overhead"),
        {"overhead": "bytes both ways to payload"},
    ),
)


def shares(table: ProfileTable) -> str:
    """What is late or lost, of every mode."""
    return _group(table, *_SHARES)


def estimates(table: ProfileTable) -> str:
    """The other figures of every mode."""
    return "".join(_group(table, *group) for group in _GROUPS)


def _group(
    table: ProfileTable, title: str, told: str, names: Sequence[str], titles: dict[str, str]
) -> str:
    figures = [figure(name) for name in names]
    heads = [_head(titles.get(each.name, _title(each)), unit_of(each.unit)) for each in figures]
    rows = [[_cell(mode, each) for each in figures] for mode in table.modes]
    return framed(title, told, heads, _named(table.modes), rows)


def _title(shown: Figure) -> str:
    if shown.name.startswith("late_or_lost"):
        return f"at {shown.name.rpartition('_')[2]} ms"
    return shown.title.removesuffix(" lateness")


def _head(title: str, unit: str) -> str:
    return safe(title) + (f' <span class="unit">{safe(unit)}</span>' if unit else "")


def _cell(mode: ModeTable, shown: Figure) -> str:
    found = mode.estimates[shown.name]
    told = bare(found.value, shown.unit)
    if found.ground is Ground.RANGE and math.isfinite(found.value):
        return f"{told}<small>{_worst(found, shown)}</small>"
    if 0 < found.infinite < found.seeds:
        return f"{told}<small>in {found.infinite} of {found.seeds} seeds</small>"
    between = interval(found, shown.unit)
    sign = "*" if found.ground is Ground.FRAMES else ""
    return told + (f"<small>{between}{sign}</small>" if between else "")


def _worst(found: Estimate, shown: Figure) -> str:
    if found.infinite:
        return f"never in {found.infinite} of {found.seeds}"
    return f"worst {bare(found.high, shown.unit)}"


def opinions(table: ProfileTable) -> str:
    """MOS with R beneath, marked where the model is asked more than it was made for."""
    heads = [_head(f"MOS at {1000 * playout:.0f} ms", "") for playout in PLAYOUT]
    rows = [[_opinion(mode, playout) for playout in PLAYOUT] for mode in table.modes]
    told = (
        "Narrow-band estimate by ITU-T G.107 for comparing, no listening test; R beneath. It counts"
        " the delay of playing later, too. † outside the ranges that G.107 permits, in some seed."
    )
    return framed("E-model", told, heads, _named(table.modes), rows)


def _opinion(mode: ModeTable, playout: float) -> str:
    score = mode.estimates[opinion(playout)]
    sign = "†" if playout in mode.outside else ""
    between = interval(score, "score")
    told = f"{bare(score.value, 'score')}{sign}" + (f"<small>{between}</small>" if between else "")
    return f"{told}<small>R {bare(mode.estimates[rating(playout)].value, 'rating')}</small>"


def differences(table: ProfileTable) -> str:
    """Every mode less the baseline, seed by seed; empty where there is nothing to compare."""
    others = [mode for mode in table.modes if mode.comparisons]
    if not others:
        return ""
    compared = [each for each in FIGURES if each.compared]
    heads = [_head(_compared(each), unit_of(each.unit)) for each in compared]
    rows = [[_difference(mode.comparisons[each.name]) for each in compared] for mode in others]
    pairs = max(found.difference.seeds for mode in others for found in mode.comparisons.values())
    count = table.comparisons
    corrected = (
        f", corrected for the {count} modes compared in each column (Bonferroni)"
        if count > 1
        else ""
    )
    told = (
        f"Each mode less {safe(table.baseline or '')}, seed by seed ({pairs} pairs), with"
        f" {100 * CONFIDENCE:.0f} % intervals{corrected}: the mean, or the median where the tables"
        " have a median. Where the interval holds 0, no difference is shown, which does not say"
        " that there is none."
    )
    return framed("Differences", told, heads, _named(others), rows, plain=False, style="tight")


def _compared(shown: Figure) -> str:
    if shown.name.startswith("late_or_lost"):
        return f"late or lost at {shown.name.rpartition('_')[2]} ms"
    return shown.title


def _difference(found: Comparison) -> str:
    unit = found.figure.unit
    difference = found.difference
    strong = found.verdict in {Verdict.BETTER, Verdict.WORSE}
    word = f"<b>{found.word}</b>" if strong else found.word
    if found.verdict is Verdict.UNKNOWN:
        return f"{bare(float('nan'), unit)}<small class='word'>{word}</small>"
    between = interval(difference, unit, difference=True)
    return (
        signed(difference.value, unit)
        + (f"<small>{between}</small>" if between else "")
        + f'<small class="word">{word}</small>'
    )


def _named(modes: Sequence[ModeTable]) -> list[tuple[str, bool]]:
    return [(mode.name, mode.note.reference) for mode in modes]


def framed(
    title: str,
    told: str,
    heads: Sequence[str],
    names: Sequence[tuple[str, bool]],
    rows: Sequence[Sequence[str]],
    *,
    first: str = "mode",
    plain: bool = True,
    anchors: Sequence[str] = (),
    style: str = "",
) -> str:
    """A table that scrolls by itself where the screen is narrow; `heads` and `rows` are HTML."""
    label = safe(title)
    told = safe(told) if plain else told
    body = []
    for place, ((name, reference), cells) in enumerate(zip(names, rows, strict=True)):
        kind = ' class="ref"' if reference else ""
        data = "".join(f"<td>{cell}</td>" for cell in cells)
        told_name = f'<a href="#{anchors[place]}">{safe(name)}</a>' if anchors else safe(name)
        body.append(f'<tr><th scope="row"{kind}>{told_name}</th>{data}</tr>')
    columns = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
        f'<table class="{style}">'
        f"<caption><span><b>{label}.</b> {told}</span></caption>"
        f'<thead><tr><th scope="col">{safe(first)}</th>{columns}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )
