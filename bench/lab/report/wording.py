"""What was found, in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from bench.lab.figures import (
    STATED,
    Comparison,
    Ground,
    ModeTable,
    ProfileTable,
    Verdict,
    late_or_lost,
)
from bench.lab.record import ProfileNote
from bench.lab.report.text import DASH, SPACE, amount, bare, interval, short
from tenuto.media import FRAME_DURATION

__all__ = ["SHARE", "finding", "headline", "notes", "references", "tersely"]

SHARE: Final = late_or_lost(STATED)
"""The figure of the headline."""

_AT: Final = f"{1000 * STATED:.0f}{SPACE}ms"
_LETTERS: Final = 48
"""Of a name in a sentence."""
_WORDS: Final = {
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.NOT_SHOWN: "no difference shown",
    Verdict.TOO_SMALL: "a difference too small to matter",
    Verdict.TOO_FEW: "too few seeds to compare",
    Verdict.UNKNOWN: "cannot be compared",
}


def _name(named: ModeTable | ProfileNote) -> str:
    return short(named.name, _LETTERS)


def headline(tables: Sequence[ProfileTable]) -> str:
    """For the whole page, in plain text."""
    if len(tables) == 1:
        return finding(tables[0])
    measured = [table for table in tables if table.modes]
    if not measured:
        return "Nothing was measured that counts."
    if len(measured) == 1:
        return finding(measured[0])
    ordered = sorted(measured, key=_of_baseline)
    low, high = ordered[0], ordered[-1]
    names = {table.baseline for table in measured}
    only = short(names.pop() or DASH, _LETTERS) if len(names) == 1 else "the baseline of each"
    return (
        f"Over {len(measured)} profiles, {only} left from"
        f" {amount(_of_baseline(low), 'share')} ({_name(low.note)}) to"
        f" {amount(_of_baseline(high), 'share')} ({_name(high.note)}) of the audio late or lost at"
        f" {_AT} of playout delay."
    )


def _of_baseline(table: ProfileTable) -> float:
    mode = table.mode(table.baseline)
    return mode.estimates[SHARE].value if mode is not None else 0.0


def finding(table: ProfileTable) -> str:
    """Of one profile: the baseline, and the product's other modes beside it."""
    baseline = table.mode(table.baseline)
    if baseline is None:
        return f"Nothing was measured on {_name(table.note)} that counts."
    told = (
        f"On {_name(table.note)}, {_name(baseline)} left"
        f" {amount(baseline.estimates[SHARE].value, 'share')} of the audio late or lost at {_AT} of"
        f" playout delay ({_ground(baseline)})"
    )
    others = [mode for mode in table.modes if mode.comparisons and not mode.note.reference]
    return f"{told}{_beside(others)}."


def _ground(mode: ModeTable) -> str:
    found = mode.estimates[SHARE]
    between = interval(found, "share")
    match found.ground:
        case Ground.SEEDS:
            return f"95{SPACE}% interval {between}{SPACE}%"
        case Ground.FRAMES:
            return f"{between}{SPACE}%, from {len(mode.pooled):,} frames"
        case Ground.RANGE | Ground.NOTHING:
            return "one seed"


def _beside(others: Sequence[ModeTable]) -> str:
    """`; tcp-cubic left 12.8 % (worse) and ...`."""
    if not others:
        return ""
    first, *rest = _with_verdicts(others)
    return f"; {_listed([first.replace(' ', ' left ', 1), *rest])}"


def _with_verdicts(modes: Sequence[ModeTable]) -> list[str]:
    """Names and shares; the verdict with each, or with the last one if all have the same."""
    shares = [f"{_name(mode)} {amount(mode.estimates[SHARE].value, 'share')}" for mode in modes]
    verdicts = [mode.comparisons[SHARE].verdict for mode in modes]
    if len(set(verdicts)) > 1:
        return [f"{a} ({_WORDS[b]})" for a, b in zip(shares, verdicts, strict=True)]
    each = "each " if len(modes) > 1 and verdicts[0] in {Verdict.BETTER, Verdict.WORSE} else ""
    return [*shares[:-1], f"{shares[-1]} ({each}{_WORDS[verdicts[0]]})"]


def _listed(words: Iterable[str]) -> str:
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last


def references(table: ProfileTable) -> str:
    """What the bare senders did, best first; empty where there are none."""
    others = [mode for mode in table.modes if mode.comparisons and mode.note.reference]
    if not others:
        return ""
    ordered = sorted(others, key=lambda mode: mode.estimates[SHARE].value)
    told = _with_verdicts(ordered)
    against = short(table.baseline or DASH, _LETTERS)
    return f"Bare senders on the same links: {_listed(told)}. Each is set against {against}."


def notes(table: ProfileTable) -> list[str]:
    """What a reader must know before he believes a figure."""
    told = []
    for playout in table.repair:
        landing = 1000 * (2 * (table.floor or 0.0) + FRAME_DURATION)
        told.append(
            f"{1000 * playout:.0f} ms of playout delay lies where a frame that was lost once comes"
            f" again ({landing:.0f} ms: a round trip and a frame). Which side of it they fall on"
            " is decided by a hair; compare at the other delays."
        )
    said: dict[str, list[str]] = {}
    for mode in table.modes:
        for words in _short_of(mode):
            said.setdefault(words, []).append(_name(mode))
    told += [f"{', '.join(names)}: {words}" for words, names in said.items()]
    if table.missing and table.modes:
        seeds = ", ".join(map(str, table.missing))
        told.append(f"Seeds that are in no figure, for no wave of theirs counts: {seeds}.")
    if table.absent and table.modes:
        told.append(f"No flow that counts: {', '.join(table.absent)}.")
    return told


def _short_of(mode: ModeTable) -> list[str]:
    """What its flows did not get: it counts as never come."""
    ended = sum(count for _, count in mode.troubles)
    why = "; ".join(
        f"{reason} ({count}×)" if count > 1 else reason for reason, count in mode.troubles[:3]
    )
    of = f"of {len(mode.flows)} flows"
    told = []
    if ended:
        told.append(f"{ended} {of} ended early: {why}. What they did not get counts as never come.")
    if mode.silent:
        told.append(f"{mode.silent} {of} got no frame at all; they are in every share.")
    return told


def tersely(found: Comparison | None) -> str:
    """The verdict where there is little room."""
    if found is None:
        return "baseline"
    return {
        Verdict.NOT_SHOWN: "not shown",
        Verdict.TOO_SMALL: "too small",
        Verdict.TOO_FEW: "few seeds",
        Verdict.UNKNOWN: bare(float("nan"), "share"),
    }.get(found.verdict, found.word)
