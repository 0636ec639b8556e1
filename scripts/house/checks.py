"""`scripts/check`: everything that can be said about the tree without its behaviour."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from house.changes import check_fragments
from house.console import Console
from house.environment import Environment
from house.purity import pragmas, pure_packages
from house.trouble import Trouble
from house.wheelguard import build_wheel, inspect_wheel

__all__ = ["Outcome", "check"]

_NOTHING_COLLECTED = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one step found."""

    passed: bool
    output: str = ""


@dataclass(frozen=True, slots=True)
class _Checker:
    """Runs tools of the environment in the project's root."""

    environment: Environment

    @property
    def root(self) -> Path:
        return self.environment.root

    def module(
        self, name: str, *arguments: str, live: bool = False
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.environment.python), "-m", name, *arguments],
            cwd=self.root,
            env=self.environment.variables(),
            stdin=subprocess.DEVNULL,
            stdout=None if live else subprocess.PIPE,
            stderr=None if live else subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )

    def tool(self, name: str, *arguments: str) -> Outcome:
        done = self.module(name, *arguments)
        return Outcome(done.returncode == 0, done.stdout)


def check(arguments: Sequence[str], environment: Environment, console: Console) -> int:
    """Run the steps in order, all of them whatever fails; named ones only if any are named."""
    steps = _select(arguments)
    checker = _Checker(environment)
    rows: list[tuple[str, bool, float]] = []
    for name in steps:
        console.line(f"[check] {name} ...")
        started = time.monotonic()
        outcome = _STEPS[name](checker)
        elapsed = time.monotonic() - started
        if not outcome.passed:
            console.line(outcome.output.rstrip() or f"{name} failed without a word")
        rows.append((name, outcome.passed, elapsed))
    console.line(_table(rows))
    return 0 if all(passed for _, passed, _ in rows) else 1


def _select(arguments: Sequence[str]) -> list[str]:
    full = "--full" in arguments
    named = [argument for argument in arguments if argument != "--full"]
    unknown = [name for name in named if name not in _STEPS]
    if unknown:
        raise Trouble(f"no check is called {unknown[0]!r}.", f"There are: {', '.join(_STEPS)}.")
    if named:
        return named
    return [name for name in _STEPS if full or name not in _LONG]


def _table(rows: Sequence[tuple[str, bool, float]]) -> str:
    lines = ["", f"{'step':<14}{'result':<8}{'time':>8}"]
    for name, passed, elapsed in rows:
        lines.append(f"{name:<14}{'ok' if passed else 'FAILED':<8}{elapsed:>6.1f} s")
    failed = sum(not passed for _, passed, _ in rows)
    total = sum(elapsed for _, _, elapsed in rows)
    verdict = f"{failed} of {len(rows)} failed" if failed else f"all {len(rows)} passed"
    return "\n".join([*lines, f"{verdict} in {total:.1f} s"])


def _format(checker: _Checker) -> Outcome:
    return checker.tool("ruff", "format", "--check", ".")


def _lint(checker: _Checker) -> Outcome:
    return checker.tool("ruff", "check", ".")


def _types(checker: _Checker) -> Outcome:
    return checker.tool("mypy")


def _imports(checker: _Checker) -> Outcome:
    # Its module cannot be run with -m.
    code = "import sys; from importlinter.cli import lint_imports_command as c; sys.exit(c())"
    done = subprocess.run(
        [str(checker.environment.python), "-c", code, "--no-cache"],
        cwd=checker.root,
        env=checker.environment.variables(),
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(done.returncode == 0, done.stdout + done.stderr)


def _pure(checker: _Checker) -> Outcome:
    """Every branch of the pure packages is taken by tests/pure, and none is excused.

    What is long, and takes no branch of its own, runs beside it without being watched.
    """
    packages = pure_packages(checker.root)
    excused = pragmas(checker.root, packages)
    if excused:
        return Outcome(False, "\n".join(f"{place}: pragma in a pure package" for place in excused))
    with tempfile.TemporaryDirectory() as folder:
        data = f"--data-file={Path(folder) / 'coverage'}"
        tests = ["-m", "pytest", "-n", "2", "-q", "tests/pure", "-m", "not untraced and not soak"]
        sources = f"--source={','.join(packages)}"
        with ThreadPoolExecutor() as pool:
            beside = pool.submit(checker.tool, "pytest", "-q", "tests/pure", "-m", "untraced")
            run = checker.tool("coverage", "run", "--branch", sources, data, *tests)
        untraced = beside.result()
        checker.tool("coverage", "combine", data, folder)
        report = checker.tool("coverage", "report", data, "--fail-under=100", "--precision=2")
    found = (run, untraced, report)
    return Outcome(
        all(one.passed for one in found), "\n".join(one.output for one in found if not one.passed)
    )


def _wheel(checker: _Checker) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        built = build_wheel(checker.environment.python, checker.root, Path(folder))
        if isinstance(built, str):
            return Outcome(False, built)
        flaws = inspect_wheel(built)
    return Outcome(not flaws, "\n".join(flaws))


def _changes(checker: _Checker) -> Outcome:
    flaws = check_fragments(checker.root)
    if flaws:
        return Outcome(False, "\n".join(flaws))
    return checker.tool("towncrier", "build", "--draft", "--version", "0")


def _shell(checker: _Checker) -> Outcome:
    scripts = sorted(
        path
        for folder in ("scripts", ".ci", "netem/scripts")
        for path in (checker.root / folder).iterdir()
        if path.is_file() and (path.suffix == ".sh" or path.read_bytes().startswith(b"#!/bin/"))
    )
    folder = checker.environment.python.parent
    shellcheck = folder / ("shellcheck.exe" if sys.platform == "win32" else "shellcheck")
    done = subprocess.run(
        [shellcheck, "--external-sources", "--source-path=SCRIPTDIR", *scripts],
        cwd=checker.root,
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(done.returncode == 0, done.stdout + done.stderr)


def _soak(checker: _Checker) -> Outcome:
    """The tests that take minutes, with their progress shown."""
    done = checker.module("pytest", "-n", "2", "-m", "soak", "--timeout=7200", live=True)
    return Outcome(done.returncode in {0, _NOTHING_COLLECTED}, "see above")


_STEPS: dict[str, Callable[[_Checker], Outcome]] = {
    "format": _format,
    "lint": _lint,
    "types": _types,
    "imports": _imports,
    "pure": _pure,
    "wheel": _wheel,
    "changes": _changes,
    "shell": _shell,
    "soak": _soak,
}
_LONG = {"soak"}
