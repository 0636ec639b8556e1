"""From the results to everything that the report shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench.lab.figures.catalogue import (
    FIGURES,
    Figure,
    Measured,
    bounds,
    late_or_lost,
    measure,
)
from bench.lab.figures.comparison import Comparison, compare
from bench.lab.figures.intervals import Estimate, estimate, share_estimate, typical
from bench.lab.figures.lateness import Lateness, floor_of, scheduled
from bench.lab.figures.playout import CURVE, NEAR, PLAYOUT, STATED, curve, on_repair
from bench.lab.record import Flow, ModeNote, ProfileNote, Results

__all__ = ["BASELINE", "ModeTable", "ProfileTable", "tables"]

BASELINE: Final = "quic-stream"
"""What the others are compared with, where it was run; else the first mode that was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeTable:
    """One mode over one profile, all seeds."""

    note: ModeNote
    flows: tuple[Measured, ...]
    values: Mapping[str, Mapping[int, float]]
    """By figure and seed."""
    estimates: Mapping[str, Estimate]
    comparisons: Mapping[str, Comparison]
    """With the baseline; empty for the baseline itself."""
    pooled: Lateness
    """Of all frames, ascending."""
    curve: NDArray[np.float64]
    """Late or lost at each playout delay of `CURVE`."""
    troubles: tuple[tuple[str, int], ...]
    """Why flows ended early, and how many did so; their frames count as never come."""
    silent: int
    """Flows that got no frame at all."""
    outside: frozenset[float]
    """Playout delays at which the E-model was asked beyond its ranges, for some seed."""

    @property
    def name(self) -> str:
        return self.note.name

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(sorted({each.flow.seed for each in self.flows}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileTable:
    note: ProfileNote
    modes: tuple[ModeTable, ...]
    """Those with a valid flow, in the order of the setting."""
    absent: tuple[str, ...]
    """Modes that were asked for and have no valid flow."""
    missing: tuple[int, ...]
    """Seeds that were asked for and have no valid flow in any mode."""
    baseline: str | None
    floor: float | None
    """The smallest delay of any frame; None where none came."""
    comparisons: int
    """Made of each figure, for which its intervals are corrected: each is a question of its own."""
    repair: tuple[float, ...]
    """Playout delays of the tables on which a repaired frame lands."""
    typical: int | None
    """The seed in which the baseline's late-or-lost share is the median one."""

    def mode(self, name: str | None) -> ModeTable | None:
        return next((each for each in self.modes if each.name == name), None)


def tables(results: Results) -> tuple[ProfileTable, ...]:
    """One for each profile of the setting, and for any other that a flow names."""
    valid = results.valid_flows()
    notes = {note.name: note for note in results.setting.profiles}
    for flow in results.flows:
        notes.setdefault(flow.profile, ProfileNote(name=flow.profile, summary="", text=""))
    return tuple(
        _profile(results, note, [flow for flow in valid if flow.profile == note.name])
        for note in notes.values()
    )


def _profile(results: Results, note: ProfileNote, flows: Sequence[Flow]) -> ProfileTable:
    floor = floor_of(flows)
    frames = scheduled(results.setting.seconds)
    measured = [
        measure(flow, floor=floor, frames=frames, frame_size=results.setting.frame_size)
        for flow in flows
    ]
    notes = {mode.name: mode for mode in results.setting.modes}
    for flow in flows:
        notes.setdefault(flow.mode, ModeNote(name=flow.mode, summary="", reference=False))
    by_mode = {name: [each for each in measured if each.flow.mode == name] for name in notes}
    run = [name for name in notes if by_mode[name]]
    baseline = BASELINE if BASELINE in run else next(iter(run), None)
    values = {name: _values(by_mode[name]) for name in run}
    compared = [each for each in FIGURES if each.compared]
    comparisons = max(len(run) - 1, 0)

    def against(name: str) -> dict[str, Comparison]:
        if baseline is None or name == baseline:
            return {}
        return {
            each.name: compare(
                each,
                values[name][each.name],
                values[baseline][each.name],
                comparisons=comparisons,
                frames=frames,
            )
            for each in compared
        }

    return ProfileTable(
        note=note,
        modes=tuple(_mode(notes[name], by_mode[name], values[name], against(name)) for name in run),
        absent=tuple(name for name in notes if name not in run),
        missing=tuple(sorted(set(results.setting.seeds) - {flow.seed for flow in flows})),
        baseline=baseline,
        floor=floor,
        comparisons=comparisons,
        repair=tuple(each for each in PLAYOUT if _lands(measured, each, floor)),
        typical=_typical(values[baseline]) if baseline is not None else None,
    )


def _lands(flows: Sequence[Measured], playout: float, floor: float | None) -> bool:
    """Whether repaired frames come so near to `playout`, and some did."""
    return (
        floor is not None
        and on_repair(playout, floor)
        and any(bool(np.any(np.abs(each.lateness - playout) <= NEAR)) for each in flows)
    )


def _values(flows: Sequence[Measured]) -> dict[str, dict[int, float]]:
    """By figure and seed; a seed that ran twice counts once, by its mean."""
    seeds = sorted({each.flow.seed for each in flows})
    return {
        figure.name: {
            seed: fmean(figure.of(each) for each in flows if each.flow.seed == seed)
            for seed in seeds
        }
        for figure in FIGURES
    }


def _mode(
    note: ModeNote,
    flows: Sequence[Measured],
    values: Mapping[str, Mapping[int, float]],
    comparisons: Mapping[str, Comparison],
) -> ModeTable:
    pooled = np.sort(np.concatenate([each.lateness for each in flows]))
    troubles = Counter(each.flow.trouble for each in flows if each.flow.trouble is not None)
    return ModeTable(
        note=note,
        flows=tuple(flows),
        values=values,
        estimates={
            figure.name: _estimate(figure, values[figure.name], len(pooled)) for figure in FIGURES
        },
        comparisons=comparisons,
        pooled=pooled,
        curve=curve(pooled, CURVE),
        troubles=tuple(troubles.most_common()),
        silent=sum(bool(np.all(np.isinf(each.lateness))) for each in flows),
        outside=frozenset(
            playout for playout in PLAYOUT if any(each.ratings[playout].outside for each in flows)
        ),
    )


def _estimate(figure: Figure, values: Mapping[int, float], frames: int) -> Estimate:
    if figure.typical:
        return typical(list(values.values()))
    if figure.unit == "share":
        return share_estimate(list(values.values()), frames)
    return estimate(list(values.values()), bounds=bounds(figure.unit))


def _typical(values: Mapping[str, Mapping[int, float]]) -> int:
    """The lower median, and of equals the seed that comes first."""
    shares = values[late_or_lost(STATED)]
    ordered = sorted(shares, key=lambda seed: (shares[seed], seed))
    return ordered[(len(ordered) - 1) // 2]
