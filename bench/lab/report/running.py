"""How the run itself went: waves, machine, versions, and how to do it again."""

from __future__ import annotations

from typing import Final

from bench.lab.figures.validity import LIMITS
from bench.lab.record import Results, Wave
from bench.lab.report.grid import framed
from bench.lab.report.text import safe

__all__ = ["again", "invalid", "machine", "modes"]

_MANY: Final = 6
"""Waves, above which the reasons are folded."""
_BARE: Final = " (a bare sender to compare with, no part of the product)"


def invalid(results: Results) -> str:
    """The waves that do not count, and why; empty where all do."""
    bad = [wave for wave in results.waves if wave.faults]
    if not bad:
        return ""
    good = {(wave.profile, wave.seeds) for wave in results.waves if not wave.faults}
    again = sum((wave.profile, wave.seeds) in good for wave in bad)
    repeated = f" For {again} of them a repetition counts." if again else ""
    items = "".join(
        f"<li>{safe(_named(wave))}: {safe('; '.join(wave.faults))}</li>" for wave in bad
    )
    why = f"<ul>{items}</ul>"
    if len(bad) > _MANY:
        why = f"<details><summary>Which, and why</summary>{why}</details>"
    return (
        f'<div class="alert">{len(bad)} of {len(results.waves)} waves did not count: the machine'
        f" was not equal to them. Their flows are in no figure.{repeated}{why}</div>"
    )


def _named(wave: Wave) -> str:
    seeds = ", ".join(map(str, wave.seeds))
    again = ", second attempt" if wave.attempt > 1 else ""
    return f"{wave.profile}, seeds {seeds}{again}"


def machine(results: Results) -> str:
    """The worst figures of the waves that count beside their limits, and each wave's."""
    if not results.waves:
        return "<p>No wave was finished.</p>"
    counted = [wave.machine for wave in results.waves if not wave.faults]
    rows = []
    for limit in LIMITS:
        values = [limit.of(each) for each in counted]
        worst = limit.told(max(values)) if values else "–"
        rows.append([worst, limit.told(limit.most)])
    names = [(limit.what, True) for limit in LIMITS]
    told = "The worst link of each wave; one figure above its limit, and the wave is void."
    unscheduled = sorted(
        {each.machine.unscheduled for each in results.waves if each.machine.unscheduled}
    )
    notes = "".join(
        f'<p class="note">The emulators ran among ordinary processes: {safe(why)}.</p>'
        for why in unscheduled
    )
    table = framed(
        "Machine", told, ["worst that counts", "limit"], names, rows, first="what", style="slim"
    )
    return (
        f"{notes}<details><summary>The machine against its limits</summary>{table}</details>"
        f"{_each(results)}"
    )


def _each(results: Results) -> str:
    heads = ["seeds", "attempt", "counts", *(safe(limit.what) for limit in LIMITS)]
    rows = []
    for wave in results.waves:
        figures = [limit.told(limit.of(wave.machine)) for limit in LIMITS]
        seeds = safe(", ".join(map(str, wave.seeds)))
        rows.append([seeds, f"{wave.attempt}", "<b>no</b>" if wave.faults else "yes", *figures])
    names = [(wave.profile, True) for wave in results.waves]
    table = framed("Waves", "", heads, names, rows, first="profile", style="tight")
    return f"<details><summary>Wave by wave</summary>{table}</details>"


def modes(results: Results) -> str:
    """What each mode is."""
    items = "".join(
        f"<li><b>{safe(mode.name)}</b>: {safe(mode.summary)}{_BARE if mode.reference else ''}</li>"
        for mode in results.setting.modes
    )
    return f'<ul class="plain">{items}</ul>'


def again(results: Results) -> str:
    """The command, and what it ran on."""
    setting = results.setting
    versions = "".join(
        f"<div><dt>{safe(name)}</dt><dd>{safe(version)}</dd></div>"
        for name, version in setting.versions.items()
    )
    return (
        f"<pre>{safe(setting.command)}</pre>"
        f"<p>The links repeat themselves by seed: the same packets meet the same fate if they come"
        f" at the same time. Seeds {safe(', '.join(map(str, setting.seeds)))}; links by"
        f" {safe(setting.driver)}; started {safe(setting.started)}.</p>"
        f'<dl class="facts">{versions}</dl>'
    )
