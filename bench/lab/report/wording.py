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
    Verdict.TOO_FEW: "too few seeds to call it a difference",
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
    ordered = sorted(measured, key=_of_baseline)
    low, high = ordered[0], ordered[-1]
    names = {table.baseline for table in measured}
    who = (
        f"{short(names.pop() or DASH, _LETTERS)} left" if len(names) == 1 else "The baselines left"
    )
    return (
        f"Over {len(measured)} profiles, {who} from"
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
            return f"95 % interval {between} %"
        case Ground.FRAMES:
            return f"{between} %, from {len(mode.pooled):,} frames"
        case Ground.NOTHING:
            return "one seed"


def _beside(others: Sequence[ModeTable]) -> str:
    """`: tcp-cubic 12.8 % (worse), ...`; a verdict that all share is told once."""
    if not others:
        return ""
    verdicts = [_word(mode) for mode in others]
    shares = [f"{_name(mode)} {amount(mode.estimates[SHARE].value, 'share')}" for mode in others]
    shares[0] = f"{_name(others[0])} left {amount(others[0].estimates[SHARE].value, 'share')}"
    if len(set(verdicts)) == 1:
        both = "both " if len(others) == 2 else "all " if len(others) > 2 else ""
        return f"; {_listed(shares)} ({both}{verdicts[0]})"
    return f"; {_listed(f'{a} ({b})' for a, b in zip(shares, verdicts, strict=True))}"


def _word(mode: ModeTable) -> str:
    found: Comparison = mode.comparisons[SHARE]
    return _WORDS[found.verdict]


def _listed(words: Iterable[str]) -> str:
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last


def references(table: ProfileTable) -> str:
    """What the bare senders did, best first; empty where there are none."""
    others = [mode for mode in table.modes if mode.comparisons and mode.note.reference]
    if not others:
        return ""
    ordered = sorted(others, key=lambda mode: mode.estimates[SHARE].value)
    told = (
        f"{_name(mode)} {amount(mode.estimates[SHARE].value, 'share')} ({_word(mode)})"
        for mode in ordered
    )
    against = short(table.baseline or DASH, _LETTERS)
    return f"Bare senders on the same links: {_listed(told)}. Each is set against {against}."


def notes(table: ProfileTable) -> list[str]:
    """What a reader must know before he believes a figure."""
    told = []
    for playout in table.repair:
        landing = 1000 * (2 * (table.floor or 0.0) + 0.020)
        told.append(
            f"{1000 * playout:.0f} ms of playout delay lies where a frame that was lost once comes"
            f" again ({landing:.0f} ms: a round trip and a frame). Which side of it they fall on"
            " is decided by a hair; compare at the other delays."
        )
    for mode in table.modes:
        ended = sum(count for _, count in mode.troubles)
        if ended:
            why = "; ".join(
                f"{reason} ({count}×)" if count > 1 else reason
                for reason, count in mode.troubles[:3]
            )
            told.append(
                f"{_name(mode)}: {ended} of {len(mode.flows)} flows ended early: {why}. What they"
                " did not get counts as never come."
            )
        if mode.silent:
            told.append(
                f"{_name(mode)}: {mode.silent} of {len(mode.flows)} flows got no frame at all; they"
                " are in every share."
            )
    if table.absent and table.modes:
        told.append(f"No flow that counts: {', '.join(table.absent)}.")
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
