"""One call of the command: what is asked for, the run, the report, however it ends."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import click

from bench.lab.errors import Interrupted
from bench.lab.folder import REPORT, RESULTS, Folder
from bench.lab.interruption import Interruption
from bench.lab.modes import choose
from bench.lab.plan import Plan
from bench.lab.record import MOST_FRAMES, Results
from bench.lab.results_file import read_results
from bench.lab.running import run
from bench.lab.telling import clock_time, telling
from netem.catalogue import Catalogue
from netem.errors import ImpairmentError
from netem.kernel.power import ensure_power
from netem.profile import Profile
from netem.profile.errors import ProfileError
from tenuto.cli.place import shown
from tenuto.errors import OperatorError, TenutoError

__all__ = ["Report", "Request", "measure", "report_again"]

_NOTHING_COUNTS: Final = 1
"""The exit status where some profile has no figures."""

_SIGNALLED: Final = 128
"""What a shell adds to a signal's number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    profiles: tuple[str, ...]
    modes: tuple[str, ...]
    seeds: int
    seconds: float
    output: Path | None
    as_json: bool


def measure(request: Request) -> int:
    """The exit status. Raises `TenutoError` for what went wrong, once the rest is reported."""
    given = tuple(dict.fromkeys(request.profiles))
    plan = Plan(
        modes=choose(request.modes),
        profiles=_profiles(given),
        seeds=request.seeds,
        seconds=request.seconds,
    )
    _refuse_endless(plan)
    with Interruption() as interruption:
        place = request.output or Path(f"lab-{datetime.now().astimezone():%Y%m%d-%H%M%S}")
        with Folder(place, interruption, fresh=True) as folder:
            return _Session(request, plan, given, interruption, folder).run()


@dataclass(slots=True)
class _Session:
    request: Request
    plan: Plan
    given: tuple[str, ...]
    interruption: Interruption
    folder: Folder
    kept: Results | None = None

    def run(self) -> int:
        failure: TenutoError | None = None
        try:
            self._measure()
        except Interrupted:
            pass
        except TenutoError as error:
            # What we start in our own process group gets the terminal's Ctrl-C, too, and fails.
            failure = None if self.interruption.number is not None else error
        if self.kept is None:
            self.folder.leave()
            if failure is not None:
                raise failure
            _say("interrupted before a wave was finished: there is nothing to report")
            return self._status()
        if self.interruption.number is not None:
            _say("interrupted: what is finished is reported (once more: it is not)")
        with _first(failure):
            Report(self.kept, self.folder, self.interruption).write(as_json=self.request.as_json)
        return self._status()

    def _status(self) -> int:
        number = self.interruption.number
        if number is not None:
            return _SIGNALLED + number
        void = self.kept.void_profiles() if self.kept is not None else ()
        if void:
            _say(f"nothing counts on {', '.join(map(shown, void))}: the machine was too busy")
        return _NOTHING_COUNTS if void else 0

    def _measure(self) -> None:
        with _explained():
            # Before numpy is loaded, and a bar is drawn: who has threads enters no user namespace.
            ensure_power(own_network=True)
            from bench.lab.figures.validity import faults

            with telling() as told:
                told.note(_announcement(self.plan))
                run(self.plan, self.given, faults, self.interruption, told, self._keep)

    def _keep(self, results: Results) -> None:
        self.kept = results
        self.folder.write(RESULTS, results.to_json())


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """What the kernel refuses is the operator's to change."""
    try:
        yield
    except ImpairmentError as error:
        # The rest of it are ways out of netem's own command, which are none of ours.
        told = str(error).partition(". ")[0].partition(", or use")[0].rstrip(".")
        raise OperatorError(
            f"the lab's networks cannot be made here: {told}",
            remedy="be root or allow user namespaces; `python -m netem probe` says what there is",
        ) from None


@contextlib.contextmanager
def _first(failure: TenutoError | None) -> Iterator[None]:
    """Raise this at the end, whatever comes after it."""
    try:
        yield
    except TenutoError:
        if failure is None:
            raise
    if failure is not None:
        raise failure


@dataclass(frozen=True, slots=True)
class Report:
    results: Results
    folder: Folder
    interruption: Interruption

    def write(self, *, as_json: bool) -> None:
        from bench.lab import report

        width = shutil.get_terminal_size().columns
        try:
            with self.interruption.abandoned_by_second():
                summary = report.summary(self.results, width)
                try:
                    written = self.folder.write(REPORT, report.page(self.results))
                finally:
                    # It needs no disk; and who reads it may be gone, but not the report.
                    click.echo(self.results.to_json() if as_json else summary)
        except Interrupted:
            results = shown(str(self.folder.path / RESULTS))
            _say(f"no report was written: `tenuto lab --from {results}` makes it")
            return
        _say(f"the report is {shown(str(written))}")


def report_again(source: Path, output: Path | None, *, as_json: bool) -> int:
    """The same from results of before. Raises `TenutoError`."""
    results = read_results(source)
    with (
        Interruption() as interruption,
        Folder(output or source.parent, interruption, fresh=False) as folder,
    ):
        Report(results, folder, interruption).write(as_json=as_json)
        return 0 if interruption.number is None else _SIGNALLED + interruption.number


def _profiles(given: tuple[str, ...]) -> tuple[Profile, ...]:
    catalogue = Catalogue.from_environment()
    found: dict[str, Profile] = {}
    for name in given:
        try:
            profile = catalogue.load(name)
        except ProfileError as error:
            raise OperatorError(str(error).rstrip(".")) from None
        if profile.name in found:
            raise OperatorError(
                f"two profiles are called {shown(profile.name)}", remedy="rename one of the files"
            )
        found[profile.name] = profile
    return tuple(found.values())


def _refuse_endless(plan: Plan) -> None:
    frames = plan.frames * len(plan.modes) * len(plan.profiles) * plan.seeds
    if frames > MOST_FRAMES:
        raise OperatorError(
            f"this run would take {clock_time(plan.estimate())} and keep {frames:,} frames, "
            f"of {MOST_FRAMES:,} at most",
            remedy="ask for fewer seeds, seconds, modes or profiles at a time",
        )


def _announcement(plan: Plan) -> str:
    def count(number: int, noun: str) -> str:
        return f"{number} {noun}{'' if number == 1 else 's'}"

    return (
        f"{count(len(plan.modes), 'mode')} x {count(plan.seeds, 'seed')} of {plan.seconds:g} s x "
        f"{count(len(plan.profiles), 'profile')}, {count(plan.slots, 'flow')} at once, in "
        f"{count(len(plan.tasks), 'wave')}: about {clock_time(plan.estimate())}"
    )


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        click.echo(f"lab: {line}", err=True)
